import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { type LedgerFacts, ledgerFacts } from '../../../src/domain/event/ledger-facts.ts';
import { projectionsOf } from '../../../src/domain/event/projection.ts';
import type { CommandKeyName, LedgerStore } from '../../../src/store/ledger-store.ts';
import type { Violation } from './history-check.ts';

const pageItems = 1_000;
const commandsAtOnce = 100;

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
  const commands = new Map<string, { readonly seq: number; readonly mark: CommandKeyName }>();
  for (const event of log)
    for (const projection of projectionsOf(event, event.seq === 0 ? null : facts))
      switch (projection.kind) {
        case 'scope':
          scopes.set(projection.scope, scopes.get(projection.scope) ?? []);
          scopes.get(projection.scope)?.push(event.seq);
          break;
        case 'cell':
          cells.set(projection.key, { version: event.seq, value: projection.value });
          break;
        case 'line':
          lists.set(projection.list, (lists.get(projection.list) ?? new Map()).set(projection.order, projection.value));
          break;
        case 'command':
          commands.set(projection.command.id, { seq: event.seq, mark: projection.command });
          break;
      }
  const found: Violation[] = [];
  for (const [scope, seqs] of scopes) {
    const { listed, missing } = await listedUnder(store, ledgerId, scope);
    if (missing.length > 0 || listed.join() !== seqs.join())
      found.push(`projection: ${scope} lists ${listed}, not ${seqs}`);
  }
  for (const [key, cell] of cells) {
    const stored = await store.cell(key);
    if (stored?.version !== cell.version || stored.value !== cell.value)
      found.push(`projection: ${key} is of seq ${stored?.version}, not ${cell.version}`);
  }
  for (const [list, lines] of lists) {
    // Lists of actors have lines of other ledgers too.
    const there = await linesOf(store, list);
    for (const [order, value] of lines)
      if (there.get(order) !== value) found.push(`projection: ${list} lacks ${order}`);
  }
  const commandKeys = [...commands.values()];
  for (let from = 0; from < commandKeys.length; from += commandsAtOnce) {
    const asked = commandKeys.slice(from, from + commandsAtOnce);
    const known = await store.findCommands(
      ledgerId,
      asked.map(({ mark }) => mark),
    );
    for (const { seq, mark } of asked)
      if (known.get(mark.id)?.seq !== seq) found.push(`projection: command ${mark.id} is not known`);
  }
  return found;
}

async function listedUnder(
  store: LedgerStore,
  ledgerId: string,
  scope: string,
): Promise<{ readonly listed: number[]; readonly missing: number[] }> {
  const [listed, missing]: [number[], number[]] = [[], []];
  for (;;) {
    const from = Math.max(-1, listed.at(-1) ?? -1, missing.at(-1) ?? -1) + 1;
    const page = await store.readScope(ledgerId, scope, { from, limit: pageItems });
    for (const { seq } of page.entries) listed.push(seq);
    missing.push(...page.missing);
    if (page.entries.length + page.missing.length < pageItems) return { listed, missing };
  }
}

async function linesOf(store: LedgerStore, list: string): Promise<Map<string, string>> {
  const there = new Map<string, string>();
  for (let offset = 0; ; offset += pageItems) {
    const page = await store.lines(list, { offset, limit: pageItems });
    for (const { order, value } of page) there.set(order, value);
    if (page.length < pageItems) return there;
  }
}
