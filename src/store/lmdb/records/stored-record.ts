import type { Lookup } from '../../record-store.ts';
import { recordKey, recordKindBytes } from '../keys.ts';

/** A record as LMDB stores it: a line of JSON with what the store itself needs, then the unchanged value. */
export interface RecordEntry {
  readonly kind: string;
  readonly id: string;
  readonly lookups: readonly Lookup[];
  readonly expiresAt: number | null;
  readonly value: string;
}

type Header = readonly [
  kind: string,
  id: string,
  lookups: readonly (readonly [name: string, value: string, order: string])[],
  expiresAt: number | null,
];

export function formatRecord({ kind, id, lookups, expiresAt, value }: RecordEntry): string {
  const header: Header = [kind, id, lookups.map((lookup) => [lookup.name, lookup.value, lookup.order]), expiresAt];
  return `${JSON.stringify(header)}\n${value}`;
}

/** Parses the record that is stored under `key`. Throws TypeError if it is damaged, or belongs under another key. */
export function parseRecord(key: Uint8Array, text: string): RecordEntry {
  const at = text.indexOf('\n');
  const header = readHeader(text.slice(0, Math.max(0, at)));
  if (header === null) throw new TypeError('its first line cannot be read, which says of which kind it is');
  const [kind, id, lookups, expiresAt] = header;
  if (recordKey(kind, id)?.equals(key) !== true)
    throw new TypeError(`the ${kind} record ${JSON.stringify(id)} stands in its place`);
  return {
    kind,
    id,
    lookups: lookups.map(([name, value, order]) => ({ name, value, order })),
    expiresAt,
    value: text.slice(at + 1),
  };
}

function readHeader(line: string): Header | null {
  try {
    const header: unknown = JSON.parse(line);
    return isHeader(header) ? header : null;
  } catch {
    return null;
  }
}

function isHeader(value: unknown): value is Header {
  if (!Array.isArray(value) || value.length !== 4) return false;
  const [kind, id, lookups, expiresAt] = value as readonly unknown[];
  const isTexts = (texts: unknown): boolean =>
    Array.isArray(texts) && texts.length === 3 && texts.every((text) => typeof text === 'string');
  return (
    typeof kind === 'string' &&
    typeof id === 'string' &&
    Array.isArray(lookups) &&
    lookups.every(isTexts) &&
    (expiresAt === null || Number.isSafeInteger(expiresAt))
  );
}

/** The id in a key of recordKey (keys.ts). The kind is only there as a hash. */
export function idOf(key: Uint8Array): string {
  return Buffer.from(key).toString('utf8', recordKindBytes);
}
