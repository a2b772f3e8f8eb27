import type { Lookup } from '../record-store.ts';

/** A record as LMDB keeps it: a line of JSON with what the store itself needs, then the value as it came. */
export interface RecordForm {
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

export function formatRecord({ kind, id, lookups, expiresAt, value }: RecordForm): string {
  const header: Header = [kind, id, lookups.map((lookup) => [lookup.name, lookup.value, lookup.order]), expiresAt];
  return `${JSON.stringify(header)}\n${value}`;
}

export function parseRecord(text: string): RecordForm {
  const at = text.indexOf('\n');
  const [kind, id, lookups, expiresAt] = JSON.parse(text.slice(0, at)) as Header;
  return {
    kind,
    id,
    lookups: lookups.map(([name, value, order]) => ({ name, value, order })),
    expiresAt,
    value: text.slice(at + 1),
  };
}
