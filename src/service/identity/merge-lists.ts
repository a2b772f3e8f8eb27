/** One sorted list out of several that are sorted already, by a text key. */
export function mergeLists<T>(lists: readonly (readonly T[])[], keyOf: (item: T) => string, descending: boolean): T[] {
  const sign = descending ? -1 : 1;
  return lists.flat().sort((a, b) => (keyOf(a) < keyOf(b) ? -sign : keyOf(a) > keyOf(b) ? sign : 0));
}
