import { LedgerError } from '../../domain/errors.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { wrongHash } from '../../domain/event/integrity.ts';
import { names } from '../../domain/event/projection.ts';
import { CorruptRow, parseRow } from '../../domain/event/row.ts';
import { leafHash } from '../../domain/log/tree.ts';
import type { LedgerStore, StoredEntry } from '../../store/ledger-store.ts';
import { pageCharsMax } from '../../store/pages.ts';
import { tellUnreadable } from '../../store/unreadable-record.ts';
import { type BoundedLedgers, boundedLedgers } from '../walking/bounded-stores.ts';
import type { Walk } from '../walking/walk.ts';
import type { Log } from './proven-logs.ts';

/** Events that are read at once. */
const rowsPerRead = 256;
/** How many events of a master are read to find one that is readable. */
const readableWithinEvents = 8;

/** Which leaves of a log: indices `from` to `to` (excluded). */
export interface LeafRange {
  readonly from: number;
  readonly to: number;
}

/**
 * The leaves of logs, computed from the stored events. The hashes of each event and its link to the one before are
 * recomputed. Throws LedgerError `unavailable` with the reason `broken_row` for an event that is missing, cannot be
 * read, or has another hash or link than it should.
 */
export class LogRows {
  readonly #store: LedgerStore;

  constructor(store: LedgerStore) {
    this.#store = store;
  }

  /** Leaf hashes in the order of their indices. All leaves of the range must be in the log. */
  async leaves(log: Log, { from, to }: LeafRange, walk: Walk): Promise<Uint8Array[]> {
    const store = boundedLedgers(walk, this.#store);
    // The event before the first one is read for the link.
    const start = Math.max(0, from - 1);
    const leaves: Uint8Array[] = [];
    let previous: LedgerEvent | null = null;
    let index = start;
    for await (const event of this.#events(store, log, start, to)) {
      if (indexIn(log, event) !== index || (previous !== null && !isLinked(log, previous, event)))
        throw brokenRow(log.ledgerId, event.seq);
      if (index >= from) leaves.push(leafHash(recordIn(log, event)));
      previous = event;
      index += 1;
    }
    if (index !== to) throw brokenRow(log.ledgerId, log.kind === 'ledger' ? index : (previous?.seq ?? 0) + 1);
    return leaves;
  }

  /** How many events of a master the first `ledgerSize` events of its ledger have. */
  async masterSize(log: Log, ledgerSize: number, walk: Walk): Promise<number> {
    if (ledgerSize === 0) return 0;
    const store = boundedLedgers(walk, this.#store);
    const page = { from: ledgerSize - 1, limit: 1, descending: true, charsMax: pageCharsMax };
    const { entries, missing } = await store.readScope(log.ledgerId, names.masterEvents(log.id), page);
    const [lost] = missing;
    if (lost !== undefined) throw brokenRow(log.ledgerId, lost);
    const [entry] = entries;
    return entry === undefined ? 0 : indexIn(log, readRow(log, entry)) + 1;
  }

  async *#events(store: BoundedLedgers, log: Log, from: number, to: number): AsyncGenerator<LedgerEvent> {
    let seq = log.kind === 'ledger' ? from : await this.#seqOf(store, log, from);
    for (let left = to - from; left > 0; ) {
      const entries = await this.#read(store, log, seq, Math.min(left, rowsPerRead));
      for (const entry of entries) {
        const wait = store.walk.whenFree();
        if (wait !== null) await wait;
        store.walk.use(1, entry.row.length);
        yield readRow(log, entry);
      }
      const last = entries.at(-1);
      if (last === undefined) return;
      seq = last.seq + 1;
      left -= entries.length;
    }
  }

  async #read(store: BoundedLedgers, log: Log, seq: number, limit: number): Promise<readonly StoredEntry[]> {
    if (log.kind === 'ledger') return store.read(log.ledgerId, seq, limit, pageCharsMax);
    const page = { from: seq, limit, charsMax: pageCharsMax };
    const { entries, missing } = await store.readScope(log.ledgerId, names.masterEvents(log.id), page);
    const [lost] = missing;
    if (lost !== undefined) throw brokenRow(log.ledgerId, lost);
    return entries;
  }

  /** The seq, or a seq before it with no event of the master in between, of the event of a master at an index. */
  async #seqOf(store: BoundedLedgers, log: Log, index: number): Promise<number> {
    if (index === 0) return 0;
    let low = index;
    let high = ((await store.head(log.ledgerId))?.seq ?? -1) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      // For a damaged event the next readable one is taken. The bisection stays right.
      const page = { from: middle, limit: readableWithinEvents, charsMax: pageCharsMax };
      const { entries } = await store.readScope(log.ledgerId, names.masterEvents(log.id), page);
      const found = entries.map((entry) => placeOf(log, entry)).find((place) => place !== null);
      if (found?.index === index) return found.seq;
      if (found === undefined || found.index > index) high = middle;
      else low = found.seq + 1;
    }
    return low;
  }
}

/** Parses a row and checks its own hashes. */
function readRow(log: Log, entry: StoredEntry): LedgerEvent {
  const event = parsed(entry);
  const isSound =
    event !== null &&
    event.seq === entry.seq &&
    event.ledgerId === log.ledgerId &&
    (log.kind === 'ledger' || event.master?.id === log.id) &&
    wrongHash(event) === null;
  if (!isSound) throw brokenRow(log.ledgerId, entry.seq);
  return event;
}

function parsed(entry: StoredEntry): LedgerEvent | null {
  try {
    return parseRow(entry.row);
  } catch (error) {
    if (error instanceof CorruptRow) return null;
    throw error;
  }
}

function placeOf(log: Log, entry: StoredEntry): { readonly seq: number; readonly index: number } | null {
  const event = parsed(entry);
  return event?.master?.id === log.id ? { seq: entry.seq, index: event.master.seq } : null;
}

function indexIn({ kind }: Log, event: LedgerEvent): number {
  return kind === 'ledger' ? event.seq : (event.master?.seq ?? -1);
}

function recordIn({ kind }: Log, event: LedgerEvent): Uint8Array {
  return Buffer.from(kind === 'ledger' ? event.hash : event.contentHash, 'hex');
}

function isLinked({ kind }: Log, previous: LedgerEvent, event: LedgerEvent): boolean {
  return kind === 'ledger' ? event.prevHash === previous.hash : event.master?.prevHash === previous.contentHash;
}

/** Reports the row, and makes the error of the proofs that need it. */
export function brokenRow(ledgerId: string, seq: number): LedgerError {
  const error = new TypeError('it is missing or damaged, so no proof that covers it is made: see `ledger-trust scrub`');
  tellUnreadable({ kind: 'event', id: `${ledgerId} seq ${seq}`, error });
  const message =
    'A stored event that this proof needs is missing or damaged: the operator finds it in the log and has to restore it from a backup.';
  return new LedgerError('unavailable', message, { reason: 'broken_row', seq });
}

/** Whether it says that an event is missing or damaged. `details.seq` names it. */
export function isBrokenRow(error: unknown): error is LedgerError {
  return error instanceof LedgerError && error.details.reason === 'broken_row';
}
