import type { ScopeEntries, ScopePage } from '../ledger-store.ts';
import { keyText, scopeSpan } from './keys.ts';
import { readPlaces } from './log-reading.ts';
import { type CqlSession, numberOf } from './session.ts';

const COLUMNS = 'SELECT seq, bucket FROM scope_event WHERE ledger_id = ? AND scope = ? AND span = ?';
const ASCENDING = `${COLUMNS} AND seq >= ? LIMIT ?`;
const DESCENDING = `${COLUMNS} AND seq <= ? ORDER BY seq DESC LIMIT ?`;
const LAST_SEQ = Number.MAX_SAFE_INTEGER;

interface Place {
  readonly seq: number;
  readonly bucket: number;
}

/**
 * Entries under a scope. A page costs its own length, whatever the length of the ledger: only every four million events
 * there is one more partition to look into. `lastSeq` asks where the log ends (-1: it is empty).
 */
export async function readScopePage(
  session: CqlSession,
  ledgerId: string,
  scope: string,
  { from, limit, descending = false }: ScopePage,
  lastSeq: () => Promise<number>,
): Promise<ScopeEntries> {
  const places: Place[] = [];
  const read = async (span: number, start: number) => {
    const params = [keyText(ledgerId), keyText(scope), span, BigInt(start), limit - places.length];
    const rows = await session.read({ cql: descending ? DESCENDING : ASCENDING, params });
    for (const row of rows) places.push({ seq: numberOf(row, 'seq') ?? 0, bucket: numberOf(row, 'bucket') ?? 0 });
  };
  if (limit > 0) {
    if (descending) {
      const start = from ?? LAST_SEQ;
      const newest = Math.min(start, await lastSeq());
      for (let span = scopeSpan(newest); span >= 0 && places.length < limit; span--) await read(span, start);
    } else {
      const start = from ?? 0;
      let span = scopeSpan(start);
      await read(span, start);
      const last = places.length < limit ? scopeSpan(await lastSeq()) : span;
      while (places.length < limit && span < last) await read(++span, start);
    }
  }
  const entries = await readPlaces(session, ledgerId, places);
  const found = new Set(entries.map(({ seq }) => seq));
  return { entries, missing: places.map(({ seq }) => seq).filter((seq) => !found.has(seq)) };
}
