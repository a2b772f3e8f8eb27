import { commandKeyLifeMs } from '../../domain/event/event.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { orderMaxBytes, recordIdMaxBytes } from '../store-text.ts';

/** Most bytes of a text in a partition key. Cassandra's limit is 64 KiB for all columns of the key together. */
const plainMaxBytes = 8_192;
const ESCAPE = '\0';

/**
 * A text as part of a partition key, unchanged if possible. The empty text, which cannot be a key, and texts that start
 * with NUL get a NUL in front. Very long texts are replaced by their hash.
 */
export function keyText(text: string): string {
  if (Buffer.byteLength(text) > plainMaxBytes) return `${ESCAPE}#${sha256Hex(text)}`;
  return text === '' || text.startsWith(ESCAPE) ? `${ESCAPE}${text}` : text;
}

/** Inverse of keyText, except for very long texts, which are stored as a hash. No id is that long. */
export function textOfKey(key: string): string {
  return key.startsWith(ESCAPE) ? key.slice(1) : key;
}

/** Shortens an order or id to start reading at. No stored text is longer, so that comparisons give the same result. */
export function readFrom(text: string): string {
  const max = Math.max(orderMaxBytes, recordIdMaxBytes) + 2;
  return text.length <= max ? text : text.slice(0, max).toWellFormed();
}

const hourMs = 60 * 60 * 1000;

export const accessHourMs = hourMs;

/** The hour of access events, by which their blocks are in partitions. */
export function accessHour(ms: number): number {
  return Math.floor(ms / hourMs);
}

/**
 * The command keys of a ledger from one window share a partition. Shorter windows would mean more partitions to read,
 * longer ones too large partitions of a busy ledger.
 */
const commandWindowMs = 12 * hourMs;
export const commandTtlSeconds = commandKeyLifeMs / 1_000;
const clockSkewMaxMs = 5 * 60 * 1000;
export const permanentSlots = 4;

/** The slot of a command key of the time `nowMs`: its window (0 and up), or below 0 if permanent. */
export function commandSlot(id: string, permanent: boolean, nowMs: number): number {
  return permanent ? permanentSlot(id) : Math.floor(nowMs / commandWindowMs);
}

/** All windows that may hold command keys that have not expired. */
export function commandWindows(nowMs: number): number[] {
  const last = Math.floor((nowMs + clockSkewMaxMs) / commandWindowMs);
  const first = Math.max(0, Math.floor((nowMs - commandKeyLifeMs - clockSkewMaxMs) / commandWindowMs));
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

export function permanentSlot(id: string): number {
  return -1 - (Number.parseInt(sha256Hex(id).slice(0, 2), 16) % permanentSlots);
}
