import type { LedgerEvent, MasterLink } from '../domain/event.ts';
import {
  applyToMaster,
  type MasterState,
  masterFoldVersion,
  masterStateFrom,
  masterStateJson,
  nextMasterLink,
} from '../domain/master-state.ts';
import { names } from '../domain/projection.ts';
import { parseRow } from '../domain/row.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import { replayPageEvents, snapshotEveryEvents } from './bounds.ts';

/**
 * One master, inside the turn of its ledger's actor: it owns the master's state and its place in the chain.
 *
 * Invariants: `#state` is what the store holds; `#working` runs ahead of it only during a turn, and at the turn's end becomes the
 * state (commit) or is forgotten (discard).
 */
export class MasterActor {
  readonly masterId: string;
  #state: MasterState | null;
  #working: MasterState | null;
  /** master_seq of the newest snapshot; -1 if none. */
  #snapshotSeq: number;

  private constructor(masterId: string, state: MasterState | null, snapshotSeq: number) {
    this.masterId = masterId;
    this.#state = state;
    this.#working = state;
    this.#snapshotSeq = snapshotSeq;
  }

  /** Loads the state as of ledger seq `upTo`: from its snapshot, if that is of this fold and of this log, and the events after it. */
  static async load(store: LedgerStore, ledgerId: string, masterId: string): Promise<MasterActor> {
    let state = await fromSnapshot(store, ledgerId, masterId);
    const snapshotSeq = state?.masterSeq ?? -1;
    for (;;) {
      const from: number = state === null ? 0 : state.seq + 1;
      const page = await store.readScope(ledgerId, names.masterEvents(masterId), { from, limit: replayPageEvents });
      if (page.missing.length > 0) throw new Error(`master ${masterId}: events are listed that the log does not have`);
      for (const entry of page.entries) {
        const event = parseRow(entry.row);
        const expected = nextMasterLink(state, masterId);
        if (event.master?.seq !== expected.seq || event.master.prevHash !== expected.prevHash) {
          throw new Error(`master ${masterId}: the chain of its events is broken at seq ${event.seq}`);
        }
        state = applyToMaster(state, event);
      }
      if (page.entries.length < replayPageEvents) return new MasterActor(masterId, state, snapshotSeq);
    }
  }

  /** The state as of the events decided so far in this turn. */
  get working(): MasterState | null {
    return this.#working;
  }

  get nextLink(): MasterLink {
    return nextMasterLink(this.#working, this.masterId);
  }

  apply(event: LedgerEvent): void {
    this.#working = applyToMaster(this.#working, event);
  }

  commit(): void {
    this.#state = this.#working;
  }

  discard(): void {
    this.#working = this.#state;
  }

  /** Saves a snapshot when enough events came since the last one, or when asked to `always`. */
  saveSnapshot(store: LedgerStore, always: boolean): void {
    const state = this.#state;
    if (state === null) return;
    const tail = state.masterSeq - this.#snapshotSeq;
    if (tail === 0 || (tail < snapshotEveryEvents && !always)) return;
    this.#snapshotSeq = state.masterSeq;
    const snapshot = {
      foldVersion: masterFoldVersion,
      seq: state.seq,
      hash: state.hash,
      state: masterStateJson(state),
    };
    // A snapshot that was not saved is only a longer replay.
    store.saveSnapshot(this.masterId, snapshot).catch(() => {});
  }
}

async function fromSnapshot(store: LedgerStore, ledgerId: string, masterId: string): Promise<MasterState | null> {
  const snapshot = await store.snapshot(masterId);
  if (snapshot === null || snapshot.foldVersion !== masterFoldVersion) return null;
  const [entry] = await store.read(ledgerId, snapshot.seq, 1);
  if (entry === undefined || entry.seq !== snapshot.seq || parseRow(entry.row).hash !== snapshot.hash) return null;
  return masterStateFrom(snapshot.state);
}
