export interface Percentiles {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Returns the smallest value that `percent` percent of the values do not exceed. NaN if there is none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}

/** Rounded percentiles of at least one value. */
export function percentilesOf(values: readonly number[]): Percentiles {
  const at = (percent: number) => Math.round(percentile(values, percent));
  return { count: values.length, p50: at(50), p99: at(99), max: at(100) };
}
