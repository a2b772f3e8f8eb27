/** The timings of placement, ms. Some can be configured (docs/operations.md). Tests use shorter ones. */
export interface PlacementTimings {
  /** How long a lease lasts after its last renewal at Redis. */
  readonly leaseTtlMs: number;
  readonly renewEveryMs: number;
  /** How long before Redis ends a lease its holder stops relying on it. */
  readonly marginMs: number;
  /** How long a released shard is kept for its heir. */
  readonly heirMs: number;
  readonly heartbeatEveryMs: number;
  /** A node whose last announcement is older than this is gone. */
  readonly memberTtlMs: number;
  /** How often members and owners are read. */
  readonly lookEveryMs: number;
  /** After a change of members nothing is handed over for this long, because they may change again. */
  readonly quietMs: number;
  /** How many hand-overs of one node may run at once. */
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
