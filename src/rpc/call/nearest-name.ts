/**
 * The known name that a misspelt one most likely means: one that has all of its words or whose words it has all, such
 * as `ledger_type` for `type`, or else the one with the smallest edit distance. null if no names are known.
 */
export function nearestName(name: string, known: readonly string[]): string | null {
  const words = wordsOf(name);
  const sharesWords = (candidate: string): boolean => {
    const others = wordsOf(candidate);
    return (
      words.length > 0 && (words.every((word) => others.includes(word)) || others.every((word) => words.includes(word)))
    );
  };
  const alike = known.filter(sharesWords);
  let nearest: string | null = null;
  let smallest = Number.POSITIVE_INFINITY;
  for (const candidate of alike.length > 0 ? alike : known) {
    const distance = editDistance(name.toLowerCase(), candidate);
    if (distance < smallest) [nearest, smallest] = [candidate, distance];
  }
  return nearest;
}

/** The words of a name in snake or camel case. */
function wordsOf(name: string): string[] {
  return name
    .replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
}

/** How many characters have to be inserted, removed or replaced (Levenshtein). */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
