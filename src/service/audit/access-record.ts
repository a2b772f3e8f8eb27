import { ownText } from '../../runtime/collections/own-text.ts';
/** One authenticated call that named a ledger. Many records wait at once: each must have less than 1 KB. */
export interface AccessRecord {
  readonly actorId: string;
  readonly apiKeyId: string | null;
  /** null for a master or organization that does not exist, or whose ledger the caller may not know. */
  readonly ledgerId: string | null;
  /** REST method and path without the query, also for calls by other transports. */
  readonly method: string;
  readonly path: string;
  readonly responseStatus: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly requestId: string;
}

/** Paths of the API are shorter. */
export const accessPathMaxChars = 512;

export function cutPath(path: string): string {
  return path.length <= accessPathMaxChars ? path : `${ownText(path.slice(0, accessPathMaxChars - 1))}…`;
}
