/** One authenticated call that named a ledger. Many records wait at once: each must have less than 1 KB. */
export interface AccessRecord {
  readonly actorId: string;
  readonly apiKeyId: string | null;
  /** null for a master or organization that does not exist, or whose ledger the caller may not know. */
  readonly ledgerId: string | null;
  /**
   * REST method and path without the query, also for calls by other transports. The path has at most 512 characters.
   */
  readonly method: string;
  readonly path: string;
  /** HTTP status. */
  readonly responseStatus: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly requestId: string;
}

/** Paths of the API are shorter. The rest of a longer one is made up by the caller and not worth keeping. */
export const accessPathMaxChars = 512;

/** A path as records keep it. */
export function cutPath(path: string): string {
  return path.length <= accessPathMaxChars ? path : `${ownText(path.slice(0, accessPathMaxChars - 1))}…`;
}

/**
 * Copies a text. The engine lets a substring keep the whole text in memory that it was cut from, which may be a body of
 * 1 MiB.
 */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}
