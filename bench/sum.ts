/** The sum of what each of them counts. */
export function sumOf<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((sum, item) => sum + of(item), 0);
}

export function meanOf(values: readonly number[]): number {
  return sumOf(values, (value) => value) / values.length;
}

/** To a hundredth. */
export function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
