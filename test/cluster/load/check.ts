import { randomBytes } from 'node:crypto';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { parseRow } from '../../../src/domain/event/row.ts';
import { openCassandra } from '../../../src/store/cassandra/open.ts';
import type { CassandraSettings } from '../../../src/store/cassandra/session/settings.ts';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import { checkHistory, type Violation } from '../../support/history/history-check.ts';
import { checkProjected } from '../../support/history/projection-check.ts';
import { attemptsWithEvents, deniedWrites, type LoadHistory } from './load-history.ts';

const pageEvents = 1_000;

export interface CheckResult {
  readonly violations: readonly Violation[];
  readonly events: number;
}

/** Compares all answers to callers with the chains in the store, read without the nodes, and with the projections. */
export async function checkLoad(
  settings: CassandraSettings,
  ledgerIds: readonly string[],
  history: LoadHistory,
): Promise<CheckResult> {
  const random = (bytes: number) => randomBytes(bytes);
  await using stores = await openCassandra({ settings, now: Date.now, random });
  const logs = new Map<string, LedgerEvent[]>();
  for (const ledgerId of ledgerIds) logs.set(ledgerId, await readLog(stores.ledgers, ledgerId));
  const attempts = attemptsWithEvents(history.calls, logs);
  const violations: Violation[] = [
    ...history.broken.map((told) => `broken: ${told}`),
    ...deniedWrites(history.calls, logs),
  ];
  let events = 0;
  for (const [ledgerId, log] of logs) {
    events += log.length;
    const found = checkHistory(ledgerId, log, { attempts, looks: history.looks, followed: history.followed });
    if (found.length === 0) found.push(...(await checkProjected(stores.ledgers, ledgerId, log)));
    violations.push(...found.map((violation) => `ledger ${ledgerId}: ${violation}`));
  }
  return { violations, events };
}

async function readLog(store: LedgerStore, ledgerId: string): Promise<LedgerEvent[]> {
  const log: LedgerEvent[] = [];
  for (;;) {
    const page = await store.read(ledgerId, log.length, pageEvents);
    for (const { row } of page) log.push(parseRow(row));
    if (page.length < pageEvents) return log;
  }
}
