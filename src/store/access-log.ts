/** One authenticated call as its caller's access history keeps it (decisions.md, section 5: audit). */
export interface AccessEvent {
  /** UUIDv7 of the time of the answer; it sorts the history. */
  readonly id: string;
  /** Whose history it stands in. */
  readonly actorId: string;
  readonly apiKeyId: string | null;
  /** null: a master or organization under no ledger. */
  readonly ledgerId: string | null;
  /** REST method and path. */
  readonly method: string;
  readonly path: string;
  /** HTTP status. */
  readonly responseStatus: number;
  readonly requestId: string;
}

/** Which part of an actor's history is read. */
export interface AccessPage {
  /** Only calls that named this ledger; null: all. */
  readonly ledgerId: string | null;
  /** Milliseconds since 1970; nothing before it is shown, whether it is still kept or not. */
  readonly since: number;
  readonly limit: number;
  readonly offset: number;
  /** Newest first. */
  readonly descending: boolean;
}

/**
 * What callers did, kept for a while. Written in bulk behind the answers and seldom read: an append costs what its
 * events take up, whatever is there already, and expiry drops whole stretches of time.
 *
 * A history is in the order of the ids. A writer hands its events over in that order, so that the store of a single one need not
 * sort; there, an event whose id lies before one that was handed over earlier is kept too, but its place may be among the later ones.
 */
export interface AccessLog {
  /**
   * Durable, and found by every `list` that begins later, when it resolves. Throws LedgerError `unavailable`: all, some or none
   * may have been written, and the same events handed over again, as a whole, stand there once. RangeError for events
   * that are not in the order of their ids, or whose ids are no UUIDv7.
   */
  append(events: readonly AccessEvent[]): Promise<void>;
  /** Stops reading, and throws the signal's reason, once the signal ends. */
  list(actorId: string, page: AccessPage, signal?: AbortSignal): Promise<AccessEvent[]>;
  /**
   * Forgets events from before that time (milliseconds since 1970), never later ones. Some may be kept on, for a sixth of the
   * time that is kept at most. Answers how many stretches were dropped, of the store's own measure; 0: there was nothing to do.
   */
  sweep(before: number): Promise<number>;
}
