/** Where an attack goes: addresses of this machine alone. */
export interface AttackTarget {
  /** `http://host:port` */
  readonly base: string;
  /** `host:port` */
  readonly http: string;
  /** `host:port` */
  readonly grpc: string;
}

/** Attacks until the signal ends, with so many connections at once. What the service refuses or ends is begun again. */
export type Attack = (target: AttackTarget, signal: AbortSignal, connections: number) => Promise<void>;
