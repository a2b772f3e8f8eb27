import { invalidField, type LedgerError, refusedValue } from '../../domain/errors.ts';

/** Base64url of a cursor's text. */
export const cursorForm = /^[A-Za-z0-9_-]{3,512}$/;

/** Makes a cursor, which is opaque to clients: the direction, and the place in the list to go on from. */
export function makeCursor(place: string, descending: boolean): string {
  return Buffer.from(`${descending ? 'd' : 'a'}${place}`).toString('base64url');
}

/** Returns the place. Throws `invalid_argument` if the list has no such place, or the order is another one. */
export function readCursor(cursor: string, descending: boolean, isPlace: (text: string) => boolean): string {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  const [direction, found] = [text.charAt(0), text.slice(1)];
  if (!/^[ad]$/.test(direction) || !isPlace(found)) throw unknownCursor(cursor);
  // Other texts decode to the same bytes.
  if (makeCursor(found, direction === 'd') !== cursor) throw unknownCursor(cursor);
  if ((direction === 'd') !== descending) throw invalidField('cursor', 'used with the order that it was given for');
  return found;
}

export function unknownCursor(cursor: string): LedgerError {
  return refusedValue('cursor', cursor, 'the next_cursor of a page of this list');
}
