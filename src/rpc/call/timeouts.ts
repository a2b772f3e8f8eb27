/** The longest time of a timer of Node, which would take a longer one for 1 ms. grpc-js counts no further either. */
const timerMaxMs = 2 ** 31 - 1;
const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000 };

/** Returns the timeout of a `grpc-timeout`, or the longest one that fits a timer; null if it is malformed. */
export function boundGrpcTimeout(text: string): string | null {
  const [, digits = '', unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  if (digits === '') return null;
  return `${Math.min(Number(digits), Math.floor(timerMaxMs / (unitMs[unit] ?? 1)))}${unit}`;
}

/** The same for a `Connect-Timeout-Ms`. */
export function boundConnectTimeout(text: string): string | null {
  return /^\d{1,10}$/.test(text) ? String(Math.min(Number(text), timerMaxMs)) : null;
}
