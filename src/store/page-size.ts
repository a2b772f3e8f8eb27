/** What a page that may be long has at most, and one entry more: some milliseconds of the main thread. */
export const pageCharsMax = 1024 * 1024;

/** The characters of a page, as `charsMax` counts them. */
export function charsOf(page: readonly ({ readonly value: string } | { readonly row: string })[]): number {
  let chars = 0;
  for (const entry of page) chars += 'row' in entry ? entry.row.length : entry.value.length;
  return chars;
}
