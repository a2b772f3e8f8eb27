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

export interface Percentiles {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export function percentiles(timesMs: readonly number[]): Percentiles {
  const sorted = timesMs.toSorted((left, right) => left - right);
  const at = (share: number): number => rounded(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}
