import type { Head, LedgerEntry, LedgerStore } from '../../src/store/ledger-store.ts';
import { entriesAfter, hashOf } from './store-entries.ts';

/** The ledgers that a writing child has. */
export const childLedgers: readonly string[] = ['1', '2', '3'].map(
  (digit) => `0193b3a0-0000-7000-8000-00000000000${digit}`,
);
const BATCH_SIZE = 3;
const ALL = 'all';

/** Which batch comes onto a head; all of a ledger's batches are of one size. */
export function batchNumber(head: Head | null): number {
  return head === null ? 0 : (head.seq + 1) / BATCH_SIZE;
}

/** The batch that comes onto a head. With the same salt always the same one. */
export function batchAfter(ledgerId: string, head: Head | null, salt = ''): LedgerEntry[] {
  return entriesAfter(head, BATCH_SIZE, {
    salt,
    row: (seq) => rowOf(ledgerId, seq, salt),
    projections: (seq) => [
      { kind: 'scope', scope: ALL },
      { kind: 'command', command: { id: `${ledgerId} ${seq}`, fingerprint: hashOf(`${seq}`), permanent: false } },
      { kind: 'cell', key: `last ${ledgerId}`, value: `${seq}` },
      { kind: 'line', list: `list ${ledgerId}`, order: String(seq).padStart(9, '0'), value: `${seq}` },
    ],
  });
}

/**
 * How many batches a ledger holds; throws unless they are whole, without gap, as they were written, and with all their
 * projections.
 */
export async function countBatches(store: LedgerStore, ledgerId: string): Promise<number> {
  const head = await store.head(ledgerId);
  const batches = batchNumber(head);
  const count = batches * BATCH_SIZE;
  const log = await store.read(ledgerId, 0, count + 100);
  const scope = await store.readScope(ledgerId, ALL, { limit: count + 100 });
  const lines = await store.lines(`list ${ledgerId}`, { limit: count + 100 });
  const cell = await store.cell(`last ${ledgerId}`);
  const commands = await store.findCommands(
    ledgerId,
    log.map(({ seq }) => ({ id: `${ledgerId} ${seq}`, permanent: false })),
  );
  const faults = [
    !Number.isInteger(batches) && 'half a batch',
    log.length !== count && `${log.length} rows for ${count}`,
    log.some(({ seq, row }, at) => seq !== at || !row.startsWith(`${ledgerId} ${at} `)) && 'another row',
    scope.entries.length !== count && 'another scope',
    lines.length !== count && 'other lines',
    commands.size !== count && 'other commands',
    cell?.version !== head?.seq && 'another cell',
  ].filter((fault) => fault !== false);
  if (faults.length > 0) throw new Error(`${ledgerId}: ${faults.join(', ')}`);
  return batches;
}

/** Who wrote each batch of a ledger, by the salt of its rows. */
export async function batchSalts(store: LedgerStore, ledgerId: string): Promise<string[]> {
  const log = await store.read(ledgerId, 0, 1_000_000);
  return log.filter(({ seq }) => seq % BATCH_SIZE === 0).map(({ row }) => row.split(' ')[2] ?? '');
}

function rowOf(ledgerId: string, seq: number, salt: string): string {
  return `${ledgerId} ${seq} ${salt} ${'x'.repeat(1000)}`;
}
