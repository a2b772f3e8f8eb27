/** How long everything about placement takes (cluster.md). All in milliseconds; the configuration says some of them, and tests use shorter ones. */
export interface PlacementTimings {
  /** A lease runs out so long after it was last renewed at Redis. */
  readonly leaseTtlMs: number;
  readonly renewEveryMs: number;
  /** The holder stops to believe in its lease so long before Redis forgets it. */
  readonly marginMs: number;
  /** A released shard is kept free for its heir so long. */
  readonly heirMs: number;
  readonly heartbeatEveryMs: number;
  /** A node that was not heard of for so long is gone. */
  readonly memberTtlMs: number;
  /** How often members and owners are read. */
  readonly lookEveryMs: number;
  /** After a change of members nothing is handed over for so long: they may change again. */
  readonly quietMs: number;
  /** Hand-overs of a node that are under way at a time. */
  readonly handOversMax: number;
}

export const defaultTimings: PlacementTimings = Object.freeze({
  leaseTtlMs: 15_000,
  renewEveryMs: 5_000,
  marginMs: 2_000,
  heirMs: 5_000,
  heartbeatEveryMs: 1_000,
  memberTtlMs: 3_000,
  lookEveryMs: 1_000,
  quietMs: 5_000,
  handOversMax: 8,
});
