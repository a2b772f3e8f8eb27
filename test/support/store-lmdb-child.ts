import { writeSync } from 'node:fs';
import { LedgerError } from '../../src/domain/errors.ts';
import { Fenced, type LedgerStore, OutcomeUnknown } from '../../src/store/ledger-store.ts';
import { Commits } from '../../src/store/lmdb/commits.ts';
import { LmdbLedgerStore } from '../../src/store/lmdb/log/ledger-store.ts';
import { openLmdb } from '../../src/store/lmdb/open.ts';
import { openTables } from '../../src/store/lmdb/tables.ts';
import { headOf } from './store-entries.ts';
import { batchAfter, batchNumber, childLedgers } from './store-lmdb-batches.ts';

/**
 * A process of its own that writes to a data directory, to be killed, traced or raced by tests. Every line goes out by
 * one system call, before the next step: `recv <ledger> <batch>` before an append, `ack <ledger> <batch>` after it.
 *
 *   hold DIR          opens and waits
 *   append DIR        appends to every ledger at once, for ever
 *   checkpoints DIR POINT COUNT  appends and signs checkpoints, and kills itself at a point of a raise
 *   compete DIR NAME COUNT  without the lock that keeps a second process out: claims and appends COUNT batches to one
 * ledger
 */
const [mode = '', dataDir = '', name = '', count = '0'] = process.argv.slice(2);

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

function onFatal(error: Error): void {
  say(`fatal ${error.message}`);
}

async function appendForEver(store: LedgerStore, ledgerId: string): Promise<void> {
  const claim = await store.claim(ledgerId);
  for (let head = claim.head; ; ) {
    const batch = batchNumber(head);
    const entries = batchAfter(ledgerId, head);
    say(`recv ${ledgerId} ${batch}`);
    await store.append(claim, entries);
    say(`ack ${ledgerId} ${batch}`);
    head = headOf(entries);
  }
}

async function compete(store: LedgerStore, ledgerId: string): Promise<void> {
  for (let written = 0; written < Number(count); ) {
    const claim = await store.claim(ledgerId);
    const batch = batchNumber(claim.head);
    try {
      await store.append(claim, batchAfter(ledgerId, claim.head, name));
      say(`ack ${name} ${batch}`);
      written++;
    } catch (error) {
      if (!(error instanceof Fenced)) throw error;
    }
  }
}

async function append(): Promise<void> {
  const { ledgers, records } = await openLmdb({ dataDir, now: Date.now, onFatal });
  say('open');
  const ends = await Promise.allSettled(childLedgers.map((ledgerId) => appendForEver(ledgers, ledgerId)));
  for (const end of ends) if (end.status === 'rejected') say(`end ${nameOf(end.reason)}`);
  const later = await Promise.allSettled([
    ledgers.claim('later'),
    ledgers.append({ ledgerId: 'later', fence: '1', head: null }, batchAfter('later', null)),
    ledgers.saveSnapshot('later', { foldVersion: 1, seq: 0, hash: '0'.repeat(64), state: '{}' }),
    records.put({ kind: 'later', id: 'later', replaces: 'absent', value: '{}', lookups: [] }),
  ]);
  for (const end of later) say(`later ${end.status === 'rejected' ? nameOf(end.reason) : 'done'}`);
  setTimeout(() => process.exit(0), 50);
}

function nameOf(error: unknown): string {
  if (error instanceof LedgerError) return error.code;
  return error instanceof OutcomeUnknown ? 'OutcomeUnknown' : String(error);
}

switch (mode) {
  case 'hold':
    await openLmdb({ dataDir, now: Date.now, onFatal });
    say('open');
    setInterval(() => {}, 1000);
    break;
  case 'append':
    await append();
    break;
  case 'checkpoints': {
    // It builds a long chain when it is loaded.
    const { killPointOf, signUntilKilled } = await import('./store-lmdb-checkpoints.ts');
    // The timers of the service do not keep a process alive.
    setInterval(() => {}, 1000);
    await signUntilKilled(await openLmdb({ dataDir, now: Date.now, onFatal }), killPointOf(name), Number(count), say);
    break;
  }
  case 'compete':
    await compete(new LmdbLedgerStore(openTables(dataDir), new Commits(onFatal), Date.now), childLedgers[0] ?? '');
    process.exit(0);
    break;
  default:
    throw new Error(`No mode: ${mode}`);
}
