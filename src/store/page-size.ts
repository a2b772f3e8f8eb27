/**
 * Most characters of a page that may be long, not counting its last entry. Such a page costs some milliseconds of the
 * main thread.
 */
export const pageCharsMax = 1024 * 1024;

/** Number of entries to read first when sizes are known only after reading. An entry has at most 512 KiB. */
const firstPart = 8;

/**
 * Returns how many entries of a page to read next. `read` entries with `chars` characters were read already, and at
 * most `most` more are wanted. As many as fit into `charsMax` by the average so far, at least one, and at most four
 * times as many as were read.
 */
export function nextPart(most: number, read: number, chars: number, charsMax: number): number {
  if (read === 0) return Math.min(most, firstPart);
  const fitting = Math.floor(((charsMax - chars) * read) / Math.max(1, chars));
  return Math.max(1, Math.min(most, 4 * read, fitting));
}

/** The characters of a page, as `charsMax` counts them. */
export function charsOf(page: readonly ({ readonly value: string } | { readonly row: string })[]): number {
  let chars = 0;
  for (const entry of page) chars += 'row' in entry ? entry.row.length : entry.value.length;
  return chars;
}
