import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { applyToLedger, emptyLedger, type LedgerState } from '../../../src/domain/ledger/ledger-state.ts';
import { applyToMaster, type MasterState } from '../../../src/domain/ledger/master-state.ts';
import { isoTime } from '../../../src/domain/values/time.ts';

/** A ledger's states at each of its events. */
export class Replay {
  readonly #ledger: LedgerState[] = [];
  readonly #masters = new Map<string, MasterState[]>();

  /** `log` has every seq from 0 on, once and in order. */
  constructor(log: readonly LedgerEvent[]) {
    let state = emptyLedger;
    for (const event of log) {
      state = applyToLedger(state, event);
      this.#ledger.push(state);
      if (event.master === null) continue;
      const states = this.#masters.get(event.master.id) ?? [];
      states.push(applyToMaster(states.at(-1) ?? null, event));
      this.#masters.set(event.master.id, states);
    }
  }

  get headSeq(): number {
    return this.#ledger.length - 1;
  }

  /** Behind the event at `seq`; -1: the empty ledger. */
  ledgerAt(seq: number): LedgerState {
    return this.#ledger[seq] ?? emptyLedger;
  }

  masterAt(masterId: string, seq: number): MasterState | null {
    return this.#masters.get(masterId)?.findLast((state) => state.seq <= seq) ?? null;
  }

  timeAt(seq: number): string {
    return this.#ledger[seq]?.createdAt ?? isoTime(0);
  }
}
