/** UTF-16 code units. A forger may write names of megabytes. */
const NAME_CHARS_MAX = 100;

/** The name of a member as a finding shows it: cut if it is long. Does not keep the whole name in memory. */
export function shownName(name: string): string {
  if (name.length <= NAME_CHARS_MAX) return name;
  // Well-formed, since half of a surrogate pair cannot be shown. Joined anew, since a slice keeps the whole text.
  return [...name.slice(0, NAME_CHARS_MAX).toWellFormed(), '…'].join('');
}
