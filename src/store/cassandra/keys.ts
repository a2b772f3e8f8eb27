import { commandKeyLifeMs } from '../../domain/event.ts';
import { sha256Hex } from '../../domain/hash.ts';
import { orderMaxBytes, recordIdMaxBytes } from '../store-text.ts';

/** Partition keys end at 64 KiB, over all their columns. */
const plainMaxBytes = 8_192;
const ESCAPE = '\0';

/**
 * A text as part of a partition key: itself, readable, wherever it may be. The empty text (which cannot be a key) and
 * texts that start with NUL stand behind another NUL; very long ones as their hash.
 */
export function keyText(text: string): string {
  if (Buffer.byteLength(text) > plainMaxBytes) return `${ESCAPE}#${sha256Hex(text)}`;
  return text === '' || text.startsWith(ESCAPE) ? `${ESCAPE}${text}` : text;
}

/** An order or id to start reading at. Beyond the bound nothing is stored, so what is cut off there changes no comparison. */
export function readFrom(text: string): string {
  const max = Math.max(orderMaxBytes, recordIdMaxBytes) + 2;
  return text.length <= max ? text : text.slice(0, max).toWellFormed();
}

const hourMs = 60 * 60 * 1000;
/**
 * Marks of one ledger that were made in the same twelve hours share a partition: shorter windows are more of them to look
 * into, longer ones make a busy ledger's partitions too large.
 */
const commandWindowMs = 12 * hourMs;
export const commandTtlSeconds = commandKeyLifeMs / 1_000;
/** Clocks of nodes differ by less. */
const clockSkewMs = 5 * 60 * 1000;
export const permanentSlots = 4;

/** Where the mark of a command made at `nowMs` goes: a window of time (0 and up), or below 0 where it counts for ever. */
export function commandSlot(id: string, permanent: boolean, nowMs: number): number {
  return permanent ? permanentSlot(id) : Math.floor(nowMs / commandWindowMs);
}

/** All windows in which marks may be that still count. */
export function commandWindows(nowMs: number): number[] {
  const windows: number[] = [];
  const last = Math.floor((nowMs + clockSkewMs) / commandWindowMs);
  const first = Math.floor((nowMs - commandKeyLifeMs - clockSkewMs) / commandWindowMs);
  for (let window = Math.max(first, 0); window <= last; window++) windows.push(window);
  return windows;
}

/** The slot, below 0, of a mark that counts for ever. */
export function permanentSlot(id: string): number {
  return -1 - (Number.parseInt(sha256Hex(id).slice(0, 2), 16) % permanentSlots);
}
