import { LedgerError } from '../../src/domain/errors.ts';
import {
  type Claim,
  Fenced,
  type LedgerEntry,
  type LedgerStore,
  OutcomeUnknown,
  StoreStopped,
} from '../../src/store/ledger-store.ts';
import { type RecordStore, writeUnknown } from '../../src/store/record-store.ts';

/** What can be made to fail: an append, a claim, a write or removal of a record, any read, or saving a snapshot. */
export type StoreOperation = 'append' | 'claim' | 'read' | 'snapshot' | 'record-write' | 'record-read';

/**
 * How an operation fails. `unavailable`: nothing was done. `stopped`: neither, and the store says that it takes no more
 * writes (claims and appends alone). `lost`: nothing was done and nobody says so (an append tells OutcomeUnknown, a
 * write of a record `outcome_unknown`, others `unavailable`). `applied`: done, told in the same way. The last two are
 * for appends alone, and tell OutcomeUnknown at once: `late` lands after the next claim, where it must be fenced;
 * `late-before-claim` lands as that claim begins, where it counts.
 */
export type StoreFault = 'unavailable' | 'stopped' | 'lost' | 'applied' | 'late' | 'late-before-claim';

/** Asked before each operation; null lets it pass. */
export type ChooseFault = (operation: StoreOperation) => StoreFault | null;

/** What became of appends that were held back. */
type LateOutcome = 'fenced' | 'landed';

interface FaultyLedgerStore extends LedgerStore {
  readonly lateOutcomes: readonly LateOutcome[];
}

/** Faults in the order in which they were asked for, an operation at a time. */
export function scriptedFaults(): {
  choose: ChooseFault;
  fail(operation: StoreOperation, ...faults: StoreFault[]): void;
  /** Forgets the faults that no operation has met. */
  heal(): void;
} {
  const scripts = new Map<StoreOperation, StoreFault[]>();
  return {
    choose: (operation) => scripts.get(operation)?.shift() ?? null,
    fail(operation, ...faults) {
      scripts.set(operation, [...(scripts.get(operation) ?? []), ...faults]);
    },
    heal: () => scripts.clear(),
  };
}

interface HeldAppend {
  readonly claim: Claim;
  readonly entries: readonly LedgerEntry[];
  readonly fault: 'late' | 'late-before-claim';
}

/** A ledger store that fails when told to. */
export function faultyLedgerStore(inner: LedgerStore, choose: ChooseFault): FaultyLedgerStore {
  const held = new Map<string, HeldAppend[]>();
  const lateOutcomes: LateOutcome[] = [];

  const land = async ({ claim, entries }: HeldAppend) => {
    try {
      await inner.append(claim, entries);
      lateOutcomes.push('landed');
    } catch (error) {
      if (!(error instanceof Fenced)) throw error;
      lateOutcomes.push('fenced');
    }
  };
  const reading = async <T>(read: () => Promise<T>): Promise<T> => {
    if (choose('read') !== null) throw unavailable();
    return read();
  };

  return {
    lateOutcomes,
    async claim(ledgerId) {
      const fault = choose('claim');
      if (fault === 'stopped') throw new StoreStopped();
      if (fault === 'unavailable' || fault === 'lost') throw unavailable();
      const waiting = held.get(ledgerId) ?? [];
      held.delete(ledgerId);
      for (const append of waiting) if (append.fault === 'late-before-claim') await land(append);
      const claim = await inner.claim(ledgerId);
      for (const append of waiting) if (append.fault === 'late') await land(append);
      if (fault !== null) throw unavailable();
      return claim;
    },
    async append(claim, entries) {
      const fault = choose('append');
      switch (fault) {
        case null:
          return inner.append(claim, entries);
        case 'unavailable':
          throw unavailable();
        case 'stopped':
          throw new StoreStopped();
        case 'lost':
          break;
        case 'applied':
          await inner.append(claim, entries);
          break;
        case 'late':
        case 'late-before-claim': {
          const waiting = held.get(claim.ledgerId) ?? [];
          held.set(claim.ledgerId, [...waiting, { claim, entries: structuredClone(entries), fault }]);
          break;
        }
      }
      throw new OutcomeUnknown(new Error(`injected: ${fault}`));
    },
    async saveSnapshot(owner, snapshot) {
      const fault = choose('snapshot');
      if (fault === null || fault === 'applied') await inner.saveSnapshot(owner, snapshot);
      if (fault !== null) throw unavailable();
    },
    stands: (claim, head) => reading(() => inner.stands(claim, head)),
    head: (...args) => reading(() => inner.head(...args)),
    certainHead: (ledgerId) => reading(() => inner.certainHead(ledgerId)),
    read: (...args) => reading(() => inner.read(...args)),
    readScope: (ledgerId, scope, page) => reading(() => inner.readScope(ledgerId, scope, page)),
    scopeSeqs: (ledgerId, scope, page) => reading(() => inner.scopeSeqs(ledgerId, scope, page)),
    findCommands: (ledgerId, ids) => reading(() => inner.findCommands(ledgerId, ids)),
    cell: (key) => reading(() => inner.cell(key)),
    lines: (list, page) => reading(() => inner.lines(list, page)),
    snapshot: (owner) => reading(() => inner.snapshot(owner)),
  };
}

/** A record store that fails when told to: an `applied` write is there and yet answered with `outcome_unknown`. */
export function faultyRecordStore(inner: RecordStore, choose: ChooseFault): RecordStore {
  const reading = async <T>(read: () => Promise<T>): Promise<T> => {
    if (choose('record-read') !== null) throw unavailable();
    return read();
  };
  const writing = async <T>(write: () => Promise<T>): Promise<T> => {
    const fault = choose('record-write');
    if (fault === null) return write();
    if (fault === 'unavailable') throw unavailable();
    if (fault === 'applied') await write();
    throw writeUnknown();
  };
  return {
    get: (kind, id) => reading(() => inner.get(kind, id)),
    find: (kind, lookup, page) => reading(() => inner.find(kind, lookup, page)),
    put: (write) => writing(() => inner.put(write)),
    remove: (kind, id, version) => writing(() => inner.remove(kind, id, version)),
    sweep: (now, limit) => writing(() => inner.sweep(now, limit)),
  };
}

function unavailable(): LedgerError {
  return new LedgerError('unavailable', 'The store does not answer.');
}
