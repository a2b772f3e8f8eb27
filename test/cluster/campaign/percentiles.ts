export interface Percentiles {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** The smallest value that so many percent are not above. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}

/** Those of at least one value, rounded. */
export function percentilesOf(values: readonly number[]): Percentiles {
  const at = (percent: number) => Math.round(percentile(values, percent));
  return { count: values.length, p50: at(50), p99: at(99), max: at(100) };
}
