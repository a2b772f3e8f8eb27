import { ownText } from '../../runtime/collections/own-text.ts';
import type { AccessEvent } from '../../store/access-log.ts';

/** One authenticated call that named a ledger. Many records wait at once: each must have less than 1 KB. */
export interface AccessRecord extends Omit<AccessEvent, 'id'> {
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Paths of the API are shorter. */
export const accessPathMaxChars = 512;

export function cutPath(path: string): string {
  return path.length <= accessPathMaxChars ? path : `${ownText(path.slice(0, accessPathMaxChars - 1))}…`;
}
