/**
 * The mark of a restored copy. A store that was restored from an older copy lacks events that were signed, so that what
 * it would sign could contradict what was signed before.
 */
export interface StoreStamp {
  /**
   * Of the keyspace, made by `schema apply`: another one than that of the log's record is a copy. null: no Cassandra.
   */
  readonly keyspaceId: string | null;
  /** Whether `backup` has made this data, and no command has cleared the mark since. */
  isCopy(): boolean;
  /** Removes the mark of `backup`. Durable when this returns. */
  clear(): void;
}
