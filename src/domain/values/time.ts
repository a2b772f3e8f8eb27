/** Times as clients write and read them. Inside the service they are milliseconds since 1970, UTC. */

const MINUTE_MS = 60_000;
/** 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z: the range of years with four digits. */
const TIME_MIN_MS = -62_167_219_200_000;
const TIME_MAX_MS = 253_402_300_799_999;

/** date "T" time, fraction, "Z" or offset; the letters in either case (RFC 3339, section 5.6). */
const timeOf = (fraction: string) =>
  new RegExp(
    '^([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)' +
      `(?:\\.(${fraction}))?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))$`,
  );

/** Digits behind the point in the times of requests: an event keeps them as they were sent. */
export const fractionDigitsMax = 9;

/** The times of requests. */
export const rfc3339Form = timeOf(`[0-9]{1,${fractionDigitsMax}}`);
/** All of RFC 3339: events from before requests had that bound may have longer fractions. */
const anyRfc3339 = timeOf('[0-9]+');

/** The second that was formatted last, and its text up to the point. Most times are in the same one. */
const written = { second: Number.NaN, text: '' };

/** Whether a time is in the years 0 to 9999. The time of a UUIDv7 may be later. */
export function isWritable(timeMs: number): boolean {
  return timeMs >= TIME_MIN_MS && timeMs <= TIME_MAX_MS;
}

/** As `2026-11-21T02:06:39.123Z`. RangeError outside the years 0 to 9999. */
export function isoTime(timeMs: number): string {
  if (!isWritable(timeMs)) throw new RangeError(`No time that can be written: ${timeMs}`);
  const wholeMs = Math.trunc(timeMs);
  const second = Math.floor(wholeMs / 1_000);
  if (second !== written.second) {
    written.text = new Date(second * 1_000).toISOString().slice(0, -'000Z'.length);
    written.second = second;
  }
  return `${written.text}${String(wholeMs - second * 1_000).padStart(3, '0')}Z`;
}

/**
 * Any RFC 3339 time in milliseconds since 1970; finer fractions are cut off. null: not such a time, no such date, or
 * outside the years 0 to 9999 in UTC. A leap second is accepted only at the end of June or December in UTC (section
 * 5.7). It counts as the second after it, as in POSIX time.
 */
export function parseRfc3339(text: string): number | null {
  const parts = anyRfc3339.exec(text);
  if (parts === null) return null;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as Six;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day); // Date.UTC would take the years 0 to 99 for 1900 to 1999
  if (date.getUTCMonth() !== month - 1) return null; // a day that the month does not have falls into another
  const minuteMs = date.setUTCHours(hour, minute) - offsetOf(parts[8], Number(parts[9] ?? 0), Number(parts[10] ?? 0));
  if (second === 60 && !endsInLeapSecond(minuteMs)) return null;
  const timeMs = minuteMs + second * 1_000 + Number((parts[7] ?? '').slice(0, 3).padEnd(3, '0'));
  return isWritable(timeMs) ? timeMs : null;
}

type Six = [number, number, number, number, number, number];

/** How far local time is ahead of UTC, ms. `-00:00` (no known offset) is UTC. */
function offsetOf(sign: string | undefined, hours: number, minutes: number): number {
  return (hours * 60 + minutes) * MINUTE_MS * (sign === '-' ? -1 : 1);
}

/** Whether the minute that begins at `minuteMs` is the last one of June or December in UTC. */
function endsInLeapSecond(minuteMs: number): boolean {
  const next = new Date(minuteMs + MINUTE_MS);
  const isFirstOfMonth = next.getUTCDate() === 1 && next.getUTCHours() === 0 && next.getUTCMinutes() === 0;
  return isFirstOfMonth && (next.getUTCMonth() === 0 || next.getUTCMonth() === 6);
}
