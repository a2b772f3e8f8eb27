import { LedgerError } from '../../domain/errors.ts';
import { parseRow } from '../../domain/event/row.ts';
import { emptyLedger, type LedgerState, ledgerFoldVersion, ledgerStateJson } from '../../domain/ledger/ledger-state.ts';
import { type Clock, sleep } from '../../runtime/clock/clock.ts';
import { type Claim, Fenced, OutcomeUnknown, type Snapshot, StoreStopped } from '../../store/ledger-store.ts';
import { settleRestMaxMs } from '../bounds.ts';
import { outcomeUnknown } from '../inbox/refusals.ts';
import type { ActorMeter, ClaimReason } from '../meter.ts';
import { BrokenChain } from './broken-chain.ts';
import type { DecidedBatch } from './decide-batch.ts';
import { loadLedger } from './ledger-loading.ts';
import { LoadedMasters } from './loaded-masters.ts';
import { checkRows } from './row-check.ts';
import { type SavingParts, SnapshotSaving } from './snapshot-saving.ts';

/** stands: the batch is in the log. fenced, not_written: nothing of it is or will be in the log. */
export type WriteResult = 'stands' | 'fenced' | 'not_written';

interface CommittedLedgerParts extends SavingParts {
  readonly clock: Clock;
  readonly meter: ActorMeter;
  readonly checksRows?: boolean;
}

/**
 * A ledger and its masters as the store holds them, under a claim of this node.
 *
 * Invariant: while there is a claim, `state` and `masters` are the folds of what the store held when the claim was made
 * and acknowledged since. They are forgotten with the claim.
 */
export class CommittedLedger {
  readonly #ledgerId: string;
  readonly #parts: CommittedLedgerParts;
  #claim: Claim | null = null;
  #state: LedgerState = emptyLedger;
  #masters: LoadedMasters;
  #saving: SnapshotSaving;

  constructor(ledgerId: string, parts: CommittedLedgerParts) {
    this.#ledgerId = ledgerId;
    this.#parts = parts;
    this.#masters = new LoadedMasters(parts, ledgerId);
    this.#saving = new SnapshotSaving(parts, ledgerId, -1);
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
    const started = this.#parts.clock.now();
    this.forget();
    const claim = await this.#parts.store.claim(this.#ledgerId);
    this.#parts.meter.claimed(reason);
    const { state, snapshotSeq } = await loadLedger(this.#parts.store, this.#ledgerId, claim.head);
    this.#saving = new SnapshotSaving(this.#parts, this.#ledgerId, snapshotSeq);
    this.#claim = claim;
    this.#state = state;
    this.#parts.meter.activated((this.#parts.clock.now() - started) / 1_000);
    return claim;
  }

  forget(): void {
    this.#claim = null;
    this.#state = emptyLedger;
    this.#masters = new LoadedMasters(this.#parts, this.#ledgerId);
  }

  /** Has the store confirm that claim and state still stand. Refusals rest on it. */
  async confirm(claim: Claim): Promise<WriteResult> {
    const { seq, hash } = this.#state;
    return (await this.#parts.store.stands(claim, seq < 0 ? null : { seq, hash })) ? 'stands' : 'fenced';
  }

  async readBarrier(): Promise<number> {
    if (this.#claim !== null && (await this.confirm(this.#claim)) === 'stands') return this.#state.seq;
    this.forget();
    const { head } = await this.#parts.store.claim(this.#ledgerId);
    this.#parts.meter.claimed('certainty');
    return head?.seq ?? -1;
  }

  /** After `not_written` there is a new claim. Throws LedgerError: nothing was written, or `outcome_unknown`. */
  async write(claim: Claim, batch: DecidedBatch): Promise<WriteResult> {
    if (this.#parts.checksRows) checkRows(this.#ledgerId, batch.entries);
    const started = this.#parts.clock.now();
    try {
      await this.#parts.store.append(claim, batch.entries);
    } catch (error) {
      if (error instanceof Fenced) return 'fenced';
      if (error instanceof OutcomeUnknown) return await this.#findOutcome(batch, error);
      if (error instanceof LedgerError) throw error;
      // A defect of this service or of the store, so whether it wrote is unknown.
      this.#tellDoubt('unsettled', batch, error);
      throw outcomeUnknown(error);
    }
    this.#parts.meter.committed(batch.entries.length, (this.#parts.clock.now() - started) / 1_000);
    this.#state = batch.state;
    for (const master of batch.masters.values()) master.commit();
    return 'stands';
  }

  /**
   * Finds out whether a write landed, by a new claim: it shuts the write out or finds it done. Tries again until the
   * last deadline of the batch, or until the store has stopped. Then it throws `outcome_unknown`.
   */
  async #findOutcome(batch: DecidedBatch, doubt: OutcomeUnknown): Promise<WriteResult> {
    const [first] = batch.entries;
    if (first === undefined) throw new Error('a batch without entries was written');
    const lastDeadline = Math.max(...batch.results.map(({ pending }) => pending.command.deadline));
    for (let attempt = 0; ; attempt++) {
      try {
        await this.activate('unknown_outcome');
        const [entry] = await this.#parts.store.read(this.#ledgerId, first.seq, 1);
        const isWritten = entry?.seq === first.seq && parseRow(entry.row).hash === first.hash;
        this.#tellDoubt(isWritten ? 'written' : 'not_written', batch, doubt);
        return isWritten ? 'stands' : 'not_written';
      } catch (error) {
        this.forget();
        const isInVain =
          !(error instanceof LedgerError) || error instanceof StoreStopped || error instanceof BrokenChain;
        if (isInVain || this.#parts.clock.now() >= lastDeadline) {
          const cause = new AggregateError(
            [doubt, error],
            'the store did not confirm the batch, and it could not be looked for',
          );
          this.#tellDoubt('unsettled', batch, cause);
          throw outcomeUnknown(cause);
        }
        await sleep(this.#parts.clock, Math.min(settleRestMaxMs, 10 * 2 ** attempt));
      }
    }
  }

  #tellDoubt(resolution: 'written' | 'not_written' | 'unsettled', batch: DecidedBatch, cause: unknown): void {
    const { entries, results } = batch;
    // While nothing is known of the batch, the commands that it refuses get `outcome_unknown` too.
    const concerned = results.filter(({ kind }) =>
      resolution === 'unsettled' ? kind !== 'replayed' : kind === 'written',
    );
    // All events of a stream have the id of its one call.
    const requestIds = [...new Set(concerned.flatMap(({ pending }) => pending.command.requestId ?? []))];
    const [ledgerId, seq, events] = [this.#ledgerId, entries[0]?.seq ?? -1, entries.length];
    this.#parts.meter.unknownOutcome(resolution, { ledgerId, seq, events, requestIds, cause });
  }

  /** Has snapshots saved that are due, and removes masters from memory if there are too many. */
  tidy(batch: DecidedBatch): void {
    const state = this.#state;
    void this.#saving.saveWhenDue(state.seq, () => snapshotOf(state));
    for (const master of batch.masters.values()) void master.saveWhenDue();
    this.#masters.trim();
  }

  /** Begins no save at or after `beginBefore`, ms since 1970. */
  async saveWhenLeaving(beginBefore?: number): Promise<void> {
    const state = this.#state;
    await Promise.all([
      this.#saving.saveWhenLeaving(state.seq, () => snapshotOf(state), beginBefore),
      this.#masters.saveWhenLeaving(beginBefore),
    ]);
  }
}

function snapshotOf(state: LedgerState): Snapshot {
  return { foldVersion: ledgerFoldVersion, seq: state.seq, hash: state.hash, state: ledgerStateJson(state) };
}
