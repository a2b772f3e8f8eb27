/** Where in a result `reached` is false, such as `runs.2` or `memory`: the aims that were missed. */
export function missedAims(result: unknown, path: readonly string[] = []): string[] {
  if (typeof result !== 'object' || result === null) return [];
  return Object.entries(result).flatMap(([name, value]) =>
    name === 'reached' && value === false ? [path.join('.')] : missedAims(value, [...path, name]),
  );
}
