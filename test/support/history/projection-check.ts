import type { LedgerEvent } from '../../../src/domain/event.ts';
import { type LedgerFacts, ledgerFacts } from '../../../src/domain/ledger-facts.ts';
import { projectionsOf } from '../../../src/domain/projection.ts';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import type { Violation } from './history-check.ts';

const linesLimit = 10_000;

/** Compares everything that follows from a log with what readers find. */
export async function checkProjected(
  store: LedgerStore,
  ledgerId: string,
  log: readonly LedgerEvent[],
): Promise<Violation[]> {
  const [genesis] = log;
  const facts: LedgerFacts | null = genesis === undefined ? null : ledgerFacts(genesis);
  const scopes = new Map<string, number[]>();
  const cells = new Map<string, { readonly version: number; readonly value: string }>();
  const lists = new Map<string, Map<string, string>>();
  const commands = new Map<string, number>();
  for (const event of log)
    for (const projection of projectionsOf(event, event.seq === 0 ? null : facts))
      switch (projection.kind) {
        case 'scope':
          scopes.set(projection.scope, [...(scopes.get(projection.scope) ?? []), event.seq]);
          break;
        case 'cell':
          cells.set(projection.key, { version: event.seq, value: projection.value });
          break;
        case 'line':
          lists.set(projection.list, (lists.get(projection.list) ?? new Map()).set(projection.order, projection.value));
          break;
        case 'command':
          commands.set(projection.command.id, event.seq);
          break;
      }
  const found: Violation[] = [];
  for (const [scope, seqs] of scopes) {
    const { entries, missing } = await store.readScope(ledgerId, scope, { limit: linesLimit });
    const listed = entries.map(({ seq }) => seq);
    if (missing.length > 0 || listed.join() !== seqs.join())
      found.push(`projection: ${scope} lists ${listed}, not ${seqs}`);
  }
  for (const [key, cell] of cells) {
    const stored = await store.cell(key);
    if (stored?.version !== cell.version || stored.value !== cell.value)
      found.push(`projection: ${key} is of seq ${stored?.version}, not ${cell.version}`);
  }
  for (const [list, lines] of lists) {
    const stored = await store.lines(list, { limit: linesLimit });
    // Lists of actors have lines of other ledgers too.
    const there = new Map(stored.map(({ order, value }) => [order, value]));
    for (const [order, value] of lines)
      if (there.get(order) !== value) found.push(`projection: ${list} lacks ${order}`);
  }
  const known = await store.findCommands(ledgerId, [...commands.keys()]);
  for (const [id, seq] of commands)
    if (known.get(id)?.seq !== seq) found.push(`projection: command ${id} is not known`);
  return found;
}
