/** What a page that may be long has at most, and one entry more: some milliseconds of the main thread. */
export const pageCharsMax = 1024 * 1024;

/** Entries of a store that tells their sizes only once they are read: so many are read first, of 512 KiB at most each. */
const firstPart = 8;

/**
 * How many entries to read next of a page of at most `most` more, where so many of it were read and had so many characters: as many as fit by
 * what they had on average, and no more than four times as many as are known.
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
