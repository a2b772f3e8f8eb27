/** Where an attack goes: addresses of this machine alone. */
export interface AttackTarget {
  /** `http://host:port` */
  readonly base: string;
  /** `host:port` */
  readonly http: string;
  /** `host:port` */
  readonly grpc: string;
  /** `http://host:port` of the internal port */
  readonly opsBase: string;
  /** The certificate of both public ports, PEM; null: they have no TLS. */
  readonly certificate: string | null;
}

/** What an attack did. What the service refuses counts, what fails in the attack itself does not. */
export interface AttackCount {
  readonly count: number;
  /** What is counted, such as `bytes`. */
  readonly unit: string;
}

/**
 * Attacks until the signal ends, with so many connections at once. What the service refuses or ends is begun again.
 * `begun` is called once the flood begins: the target was answered, and what it reads is there.
 * Resolves to what it did, or to null for `none`, which does nothing. Throws what is wrong with the attack itself.
 */
export type Attack = (
  target: AttackTarget,
  signal: AbortSignal,
  connections: number,
  begun: () => void,
) => Promise<AttackCount | null>;
