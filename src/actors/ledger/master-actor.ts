import type { LedgerEvent, MasterLink } from '../../domain/event/event.ts';
import { names } from '../../domain/event/projection.ts';
import {
  applyToMaster,
  type MasterState,
  masterFoldVersion,
  masterStateFrom,
  masterStateJson,
  nextMasterLink,
} from '../../domain/ledger/master-state.ts';
import type { LedgerStore, Snapshot } from '../../store/ledger-store.ts';
import { charsOf, pageCharsMax } from '../../store/pages.ts';
import { replayPageEvents } from '../bounds.ts';
import { BrokenChain, checkStored, readStored } from './broken-chain.ts';
import { isOfLog, readSnapshot } from './ledger-loading.ts';
import { type SavingParts, SnapshotSaving } from './snapshot-saving.ts';

/**
 * One master, for its ledger's actor.
 *
 * Invariants: `#state` is what the store holds. `#working` runs ahead of it only during a batch; at the batch's end it
 * becomes the state (`commit`), or is forgotten with this object.
 */
export class MasterActor {
  readonly masterId: string;
  readonly #saving: SnapshotSaving;
  #state: MasterState | null;
  #working: MasterState | null;

  private constructor(masterId: string, state: MasterState | null, saving: SnapshotSaving) {
    this.masterId = masterId;
    this.#saving = saving;
    this.#state = state;
    this.#working = state;
  }

  /**
   * Loads the newest state from snapshot and log. If the ledger's claim was lost, the state may be ahead of the
   * ledger's: a batch decided with it does not stand. Throws BrokenChain.
   */
  static async load(parts: SavingParts, ledgerId: string, masterId: string): Promise<MasterActor> {
    const { store } = parts;
    let state = await fromSnapshot(store, ledgerId, masterId);
    const saving = new SnapshotSaving(parts, masterId, state?.masterSeq ?? -1);
    for (;;) {
      const from: number = state === null ? 0 : state.seq + 1;
      const asked = { from, limit: replayPageEvents, charsMax: pageCharsMax };
      const page = await store.readScope(ledgerId, names.masterEvents(masterId), asked);
      const [missing] = page.missing;
      if (missing !== undefined)
        throw new BrokenChain(ledgerId, missing, `master ${masterId} lists it, and the log lacks it`);
      for (const entry of page.entries) {
        const event = readStored(entry, ledgerId);
        const expected = nextMasterLink(state, masterId);
        const link = event.master;
        if (link?.id !== masterId || link.seq !== expected.seq || link.prevHash !== expected.prevHash) {
          throw new BrokenChain(ledgerId, entry.seq, `it does not follow the event before it in master ${masterId}`);
        }
        checkStored(event, ledgerId);
        state = applyToMaster(state, event);
      }
      const isLast = page.entries.length < replayPageEvents && charsOf(page.entries) < pageCharsMax;
      if (isLast) return new MasterActor(masterId, state, saving);
    }
  }

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

  async saveWhenDue(): Promise<void> {
    const state = this.#state;
    if (state !== null) await this.#saving.saveWhenDue(state.masterSeq, () => snapshotOf(state));
  }

  /** Begins no save at or after `beginBefore`, ms since 1970. */
  async saveWhenLeaving(beginBefore?: number): Promise<void> {
    const state = this.#state;
    if (state !== null) await this.#saving.saveWhenLeaving(state.masterSeq, () => snapshotOf(state), beginBefore);
  }
}

function snapshotOf(state: MasterState): Snapshot {
  return { foldVersion: masterFoldVersion, seq: state.seq, hash: state.hash, state: masterStateJson(state) };
}

async function fromSnapshot(store: LedgerStore, ledgerId: string, masterId: string): Promise<MasterState | null> {
  const snapshot = await store.snapshot(masterId);
  if (snapshot === null || snapshot.foldVersion !== masterFoldVersion) return null;
  const state = readSnapshot(snapshot, masterStateFrom);
  if (state?.facts.masterId !== masterId || state.facts.ledgerId !== ledgerId) return null;
  return (await isOfLog(store, ledgerId, snapshot)) ? state : null;
}
