/** One authenticated call that named a ledger (decisions.md, section 5: audit). Many wait at once: each has less than 1 KB. */
export interface AccessRecord {
  readonly actorId: string;
  readonly apiKeyId: string | null;
  /** null: a master or organization under no ledger. */
  readonly ledgerId: string | null;
  /** REST method and path, without the query, also for calls through other transports: at most 512 characters. */
  readonly method: string;
  readonly path: string;
  /** HTTP status. */
  readonly responseStatus: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly requestId: string;
}

/** What a caller makes up behind an id is not worth keeping: the paths of the API are shorter. */
export const accessPathMaxChars = 512;

/** A path as records keep it. */
export function cutPath(path: string): string {
  return path.length <= accessPathMaxChars ? path : `${ownText(path.slice(0, accessPathMaxChars - 1))}…`;
}

/** A text that keeps no other alive: the engine lets a piece hold on to the whole that it was cut from, which may be a body of 1 MiB. */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}
