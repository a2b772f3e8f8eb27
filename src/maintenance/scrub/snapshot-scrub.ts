import type { LedgerEvent } from '../../domain/event/event.ts';
import {
  applyToLedger,
  emptyLedger,
  type LedgerState,
  ledgerFoldVersion,
  ledgerStateJson,
} from '../../domain/ledger/ledger-state.ts';
import {
  applyToMaster,
  type MasterState,
  masterFoldVersion,
  masterStateJson,
} from '../../domain/ledger/master-state.ts';
import { stateInSnapshot } from '../../service/records/sealed-snapshots.ts';
import type { LedgerStore, Snapshot } from '../../store/ledger-store.ts';
import type { Finding } from './finding.ts';

interface SnapshotScrubParts {
  readonly ledgers: Pick<LedgerStore, 'snapshot'>;
  readonly ledgerId: string;
  /** Snapshots of later events are not checked. */
  readonly headSeq: number;
  readonly found: (finding: Finding) => void;
}

/**
 * Compares the snapshots of a ledger and its masters with the folds of their events. Nodes use only a sealed snapshot
 * whose event is in the log. So a finding here is damage, or an attempt at forgery.
 */
export class SnapshotScrub {
  readonly #parts: SnapshotScrubParts;
  readonly #masters = new Map<string, MasterState>();
  /** By ledger or master id. null if there is none, or if it was compared already. */
  readonly #snapshots = new Map<string, Snapshot | null>();
  #ledger: LedgerState = emptyLedger;
  #isWhole = true;

  constructor(parts: SnapshotScrubParts) {
    this.#parts = parts;
  }

  /** Takes the events of a ledger in order, window by window. After a missing event nothing is checked any more. */
  async take(events: readonly LedgerEvent[]): Promise<void> {
    for (const event of events) {
      if (event.seq !== this.#ledger.seq + 1) this.#isWhole = false;
      if (!this.#isWhole) return;
      const ledger = applyToLedger(this.#ledger, event);
      this.#ledger = ledger;
      await this.#compare(this.#parts.ledgerId, ledgerFoldVersion, event, () => ledgerStateJson(ledger));
      if (event.master === null) continue;
      const { id } = event.master;
      const master = applyToMaster(this.#masters.get(id) ?? null, event);
      this.#masters.set(id, master);
      await this.#compare(id, masterFoldVersion, event, () => masterStateJson(master));
    }
  }

  /** Must be called after the last event. */
  finish(): void {
    if (!this.#isWhole) return;
    for (const [owner, snapshot] of this.#snapshots)
      if (snapshot !== null && snapshot.seq <= this.#parts.headSeq)
        this.#wrong(owner, snapshot, 'it says a place at which its owner has no event');
  }

  async #compare(owner: string, foldVersion: number, event: LedgerEvent, expected: () => string): Promise<void> {
    let snapshot = this.#snapshots.get(owner);
    if (snapshot === undefined) {
      const stored = await this.#parts.ledgers.snapshot(owner);
      snapshot = stored?.foldVersion === foldVersion ? stored : null;
      this.#snapshots.set(owner, snapshot);
    }
    if (snapshot?.seq !== event.seq) return;
    this.#snapshots.set(owner, null);
    if (snapshot.hash !== event.hash || stateInSnapshot(snapshot.state) !== expected())
      this.#wrong(owner, snapshot, 'it is not what the log comes to there');
  }

  #wrong(owner: string, { seq, foldVersion }: Snapshot, what: string): void {
    const { ledgerId, found } = this.#parts;
    const detail = `the snapshot of ${owner}: ${what}`;
    const place = { table: 'snapshot', key: `owner=${owner}, fold_version=${foldVersion}` };
    found({ ledgerId, seq, type: 'wrong_snapshot', detail, ...place });
  }
}
