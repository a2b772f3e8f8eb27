import type { FoundCommand } from '../ledger-store.ts';
import { commandWindows, keyText, permanentSlot } from './keys.ts';
import { type CqlSession, numberOf, type Row, textOf } from './session.ts';

const COMMANDS = 'SELECT id, seq, fingerprint FROM command WHERE ledger_id = ? AND slot IN ? AND id IN ?';
/**
 * Which of the slots for ever hold anything. Nothing in them ever expires or is deleted, so that the first row is found at once; the
 * windows must not be asked like this: they end as heaps of what has expired.
 */
const FILLED = 'SELECT slot FROM command WHERE ledger_id = ? AND slot IN ? PER PARTITION LIMIT 1';

/**
 * Finds commands by id, each with the newest of its marks; sees every append that was answered. Cassandra pays for every
 * slot times every id, and most ledgers have no marks for ever: so their slots are looked into only where there are some.
 */
export async function findCommands(
  session: CqlSession,
  ledgerId: string,
  ids: readonly string[],
  nowMs: number,
): Promise<Map<string, FoundCommand>> {
  const found = new Map<string, FoundCommand>();
  if (ids.length === 0) return found;
  const ledger = keyText(ledgerId);
  const byKey = new Map(ids.map((id) => [keyText(id), id]));
  const bySlot = Map.groupBy(byKey.keys(), (key) => permanentSlot(byKey.get(key) ?? ''));
  const [inWindows, filled] = await Promise.all([
    session.read({ cql: COMMANDS, params: [ledger, commandWindows(nowMs), [...byKey.keys()]] }),
    session.read({ cql: FILLED, params: [ledger, [...bySlot.keys()]] }),
  ]);
  const slots = filled.map((row) => numberOf(row, 'slot') ?? 0);
  const keys = slots.flatMap((slot) => bySlot.get(slot) ?? []);
  const forEver = keys.length === 0 ? [] : await session.read({ cql: COMMANDS, params: [ledger, slots, keys] });
  const newest = newestByKey([...inWindows, ...forEver]);
  for (const [key, id] of byKey) {
    const command = newest.get(key);
    if (command !== undefined) found.set(id, command);
  }
  return found;
}

function newestByKey(rows: readonly Row[]): Map<string, FoundCommand> {
  const newest = new Map<string, FoundCommand>();
  for (const row of rows) {
    const [key, seq] = [textOf(row, 'id') ?? '', numberOf(row, 'seq') ?? 0];
    if (seq >= (newest.get(key)?.seq ?? 0)) newest.set(key, { seq, fingerprint: textOf(row, 'fingerprint') ?? '' });
  }
  return newest;
}
