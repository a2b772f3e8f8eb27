import { LedgerError } from '../domain/errors.ts';
import { emptyLedger, type LedgerState, ledgerFoldVersion, ledgerStateJson } from '../domain/ledger-state.ts';
import { parseRow } from '../domain/row.ts';
import {
  type Claim,
  Fenced,
  type LedgerEntry,
  type LedgerStore,
  type MarkName,
  OutcomeUnknown,
  type Snapshot,
} from '../store/ledger-store.ts';
import { StoreStopped } from '../store/store-stopped.ts';
import { settleRestMaxMs } from './bounds.ts';
import { BrokenChain } from './broken-chain.ts';
import { type Clock, sleep } from './clock.ts';
import type { DecidedBatch } from './decide-batch.ts';
import { loadLedger } from './ledger-loading.ts';
import { LoadedMasters } from './loaded-masters.ts';
import type { ActorMeter, ClaimReason } from './meter.ts';
import type { RecentKeys } from './recent-keys.ts';
import type { RecentKeysMemory } from './recent-keys-memory.ts';
import { outcomeUnknown } from './refusals.ts';
import { checkRows } from './row-check.ts';
import { SnapshotSaving } from './snapshot-saving.ts';

/** What the store says of a turn: it stands; nothing of it is in the log, nor ever will be; or nobody can say any more. */
export type WriteResult = 'stands' | 'fenced' | 'not_written' | 'unsettled';

export interface CommittedLedgerParts {
  readonly store: LedgerStore;
  readonly clock: Clock;
  readonly monotonicMs: () => number;
  readonly meter: ActorMeter;
  readonly marks: RecentKeysMemory;
  readonly checksRows?: boolean;
}

/**
 * A ledger and its masters as the store holds them, under a claim of this node.
 *
 * Invariant: while there is a claim, `state` and `masters` are the folds of exactly what the store acknowledged under it, or held when
 * it was made; with the claim they are all forgotten. What is known of marks is kept, and counts where the ledger still ends there.
 */
export class CommittedLedger {
  readonly #ledgerId: string;
  readonly #store: LedgerStore;
  readonly #clock: Clock;
  readonly #meter: ActorMeter;
  #claim: Claim | null = null;
  #state: LedgerState = emptyLedger;
  #masters: LoadedMasters;
  #saving: SnapshotSaving;
  readonly #monotonicMs: () => number;
  readonly #marksMemory: RecentKeysMemory;
  #marks: RecentKeys;

  readonly #checksRows: boolean;

  constructor(ledgerId: string, { store, clock, monotonicMs, meter, marks, checksRows = false }: CommittedLedgerParts) {
    this.#checksRows = checksRows;
    this.#ledgerId = ledgerId;
    this.#store = store;
    this.#clock = clock;
    this.#meter = meter;
    this.#monotonicMs = monotonicMs;
    this.#marksMemory = marks;
    this.#marks = marks.of(ledgerId);
    this.#masters = new LoadedMasters(store, ledgerId);
    this.#saving = new SnapshotSaving(store, ledgerId, -1);
  }

  get claim(): Claim | null {
    return this.#claim;
  }

  get state(): LedgerState {
    return this.#state;
  }

  get masters(): LoadedMasters {
    return this.#masters;
  }

  /** Claims the ledger and loads its state. Throws LedgerError `unavailable`, also as BrokenChain. */
  async activate(reason: ClaimReason): Promise<Claim> {
    const started = this.#clock.now();
    this.forget();
    const claim = await this.#store.claim(this.#ledgerId);
    this.#meter.claimed(reason);
    const { state, snapshotSeq } = await loadLedger(this.#store, this.#ledgerId, claim.head);
    this.#saving = new SnapshotSaving(this.#store, this.#ledgerId, snapshotSeq);
    this.#claim = claim;
    this.#state = state;
    this.#marks = this.#marksMemory.of(this.#ledgerId);
    this.#marks.claimed(claim.head, this.#monotonicMs());
    this.#meter.activated((this.#clock.now() - started) / 1_000);
    return claim;
  }

  /** Whether no event that `state` is the fold of has this mark, or none that counts any more; false where that is not known. */
  isNew(mark: MarkName): boolean {
    return this.#marks.isNew(mark, this.#state.hash, this.#monotonicMs());
  }

  /** Forgets claim and states: they are read anew before the next decision. */
  forget(): void {
    this.#claim = null;
    this.#state = emptyLedger;
    this.#masters = new LoadedMasters(this.#store, this.#ledgerId);
  }

  /** Whether the state is still the ledger's, by a read begun now: what a refusal rests on. */
  async confirm(claim: Claim): Promise<WriteResult> {
    const { seq, hash } = this.#state;
    return (await this.#store.stands(claim, seq < 0 ? null : { seq, hash })) ? 'stands' : 'fenced';
  }

  /** Answers the seq of the newest event (-1: there is none) once it is certain; see LedgerActor. A new claim is not loaded for. */
  async makeCertain(): Promise<number> {
    if (this.#claim !== null && (await this.confirm(this.#claim)) === 'stands') return this.#state.seq;
    this.forget();
    const { head } = await this.#store.claim(this.#ledgerId);
    this.#meter.claimed('certainty');
    return head?.seq ?? -1;
  }

  /**
   * Makes a turn's entries durable, and its state this ledger's. `not_written` leaves a new claim and the state under it. Throws
   * LedgerError: nothing was written, or `outcome_unknown`.
   */
  async write(claim: Claim, turn: DecidedBatch): Promise<WriteResult> {
    if (this.#checksRows) checkRows(this.#ledgerId, turn.entries);
    const started = this.#clock.now();
    this.#marks = this.#marksMemory.of(this.#ledgerId);
    this.#marks.sent(turn.entries, this.#monotonicMs());
    try {
      await this.#store.append(claim, turn.entries);
    } catch (error) {
      if (error instanceof Fenced) return 'fenced';
      if (error instanceof OutcomeUnknown) return await this.#settle(turn);
      if (error instanceof LedgerError) throw error;
      // Nothing that a store may throw: whether it wrote is anybody's guess.
      throw outcomeUnknown(error);
    }
    this.#meter.committed(turn.entries.length, charactersOf(turn.entries), (this.#clock.now() - started) / 1_000);
    this.#state = turn.state;
    this.#marks.stood();
    for (const master of turn.masters.values()) master.commit();
    return 'stands';
  }

  /**
   * A new claim shuts the write out or finds it done: then it is certain. Tried until the last deadline of those who wait, or until the
   * store says that it has stopped; until it is settled, the ledger accepts no other write.
   */
  async #settle(turn: DecidedBatch): Promise<WriteResult> {
    const [first] = turn.entries;
    if (first === undefined) throw new Error('a turn without entries was written');
    const lastDeadline = Math.max(...turn.verdicts.map(({ letter }) => letter.command.deadline));
    for (let attempt = 0; ; attempt++) {
      try {
        await this.activate('unknown_outcome');
        const [entry] = await this.#store.read(this.#ledgerId, first.seq, 1);
        const isWritten = entry?.seq === first.seq && parseRow(entry.row).hash === first.hash;
        this.#meter.unknownOutcome(isWritten ? 'written' : 'not_written');
        return isWritten ? 'stands' : 'not_written';
      } catch (error) {
        this.forget();
        const isInVain =
          !(error instanceof LedgerError) || error instanceof StoreStopped || error instanceof BrokenChain;
        if (isInVain || this.#clock.now() >= lastDeadline) {
          this.#meter.unknownOutcome('unsettled');
          return 'unsettled';
        }
        await sleep(this.#clock, Math.min(settleRestMaxMs, 10 * 2 ** attempt));
      }
    }
  }

  /** Saves what has a long tail after a turn, and lets masters go that are too many. */
  tidy(turn: DecidedBatch): void {
    const state = this.#state;
    void this.#saving.saveWhenDue(state.seq, () => snapshotOf(state));
    for (const master of turn.masters.values()) void master.saveWhenDue();
    this.#masters.trim();
  }

  async saveWhenLeaving(): Promise<void> {
    const state = this.#state;
    await Promise.all([
      this.#saving.saveWhenLeaving(state.seq, () => snapshotOf(state)),
      this.#masters.saveWhenLeaving(),
    ]);
  }
}

function snapshotOf(state: LedgerState): Snapshot {
  return { foldVersion: ledgerFoldVersion, seq: state.seq, hash: state.hash, state: ledgerStateJson(state) };
}

function charactersOf(entries: readonly LedgerEntry[]): number {
  return entries.reduce((sum, entry) => sum + entry.row.length, 0);
}
