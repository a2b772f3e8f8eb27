/** One authenticated call that named a ledger (decisions.md, section 5: audit). */
export interface AccessRecord {
  readonly actorId: string;
  readonly apiKeyId: string | null;
  /** null: a master or organization under no ledger. */
  readonly ledgerId: string | null;
  /** REST method and path, without the query, also for calls through other doors. */
  readonly method: string;
  readonly path: string;
  /** HTTP status. */
  readonly responseStatus: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly requestId: string;
}
