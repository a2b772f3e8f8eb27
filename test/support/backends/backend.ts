export interface CassandraAddress {
  /** `host:port` of its nodes. */
  readonly contactPoints: readonly string[];
  readonly localDataCenter: string;
  /** Its settings are not those of production (an image's defaults): what has to be allowed by name. */
  readonly allow: readonly string[];
}

export interface RedisAddress {
  readonly url: string;
}

/** What a suite gets: an address, or why there is none. */
export type Backend<T> =
  | { readonly kind: 'there'; readonly address: T; readonly startupMs: number; readonly from: string }
  | { readonly kind: 'missing'; readonly reason: string };

export interface Backends {
  cassandra(): Promise<Backend<CassandraAddress>>;
  redis(): Promise<Backend<RedisAddress>>;
}

export type BackendName = keyof Backends;
