/**
 * The mark of a restored copy. A store that was restored from an older copy lacks events that were signed, so that what
 * it would sign could contradict what was signed before.
 */
export interface StoreStamp {
  /**
   * The id of a shared store, made by `schema apply`. If the log's record has another one (`keyspaceId`), the store is
   * a copy. So each documented way to restore gives a store another id. null: a store of one node, of which `isCopy`
   * tells.
   */
  readonly storeId: string | null;
  /** Whether `backup` has made this data, and no command has cleared the mark since. */
  isCopy(): boolean;
  /** Removes the mark of `backup`. Durable when this returns. */
  clear(): void;
}
