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
  readonly #masters = new Map<string, { state: MasterState; snapshot: Snapshot | null }>();
  #ledger: LedgerState = emptyLedger;
  #snapshot: Snapshot | null = null;
  #isWhole = true;

  constructor(parts: SnapshotScrubParts) {
    this.#parts = parts;
  }

  /** Takes the events of a ledger in order, window by window. After a missing event nothing is checked any more. */
  async take(events: readonly LedgerEvent[]): Promise<void> {
    for (const event of events) {
      if (event.seq !== this.#ledger.seq + 1) this.#isWhole = false;
      if (!this.#isWhole) return;
      if (event.seq === 0) this.#snapshot = await this.#read(this.#parts.ledgerId, ledgerFoldVersion);
      this.#ledger = applyToLedger(this.#ledger, event);
      if (this.#snapshot?.seq === event.seq)
        this.#compare(this.#parts.ledgerId, this.#snapshot, event, ledgerStateJson(this.#ledger));
      if (event.master !== null) await this.#takeOfMaster(event.master.id, event);
    }
  }

  async #takeOfMaster(masterId: string, event: LedgerEvent): Promise<void> {
    const known = this.#masters.get(masterId);
    const state = applyToMaster(known?.state ?? null, event);
    const snapshot = known === undefined ? await this.#read(masterId, masterFoldVersion) : known.snapshot;
    this.#masters.set(masterId, { state, snapshot });
    if (snapshot?.seq === event.seq) this.#compare(masterId, snapshot, event, masterStateJson(state));
  }

  /** Must be called after the last event. */
  finish(): void {
    if (!this.#isWhole) return;
    const left: [string, Snapshot | null, number][] = [[this.#parts.ledgerId, this.#snapshot, this.#ledger.seq]];
    for (const [masterId, { state, snapshot }] of this.#masters) left.push([masterId, snapshot, state.seq]);
    for (const [owner, snapshot] of left)
      if (snapshot !== null && !this.#judged.has(owner) && snapshot.seq <= this.#parts.headSeq)
        this.#wrong(owner, snapshot, 'it says a place at which its owner has no event');
  }

  readonly #judged = new Set<string>();

  #compare(owner: string, snapshot: Snapshot, event: LedgerEvent, expected: string): void {
    this.#judged.add(owner);
    if (snapshot.hash !== event.hash || stateInSnapshot(snapshot.state) !== expected)
      this.#wrong(owner, snapshot, 'it is not what the log comes to there');
  }

  #wrong(owner: string, { seq, foldVersion }: Snapshot, detail: string): void {
    const { ledgerId, found } = this.#parts;
    const key = `owner=${owner}, fold_version=${foldVersion}`;
    found({
      ledgerId,
      seq,
      type: 'wrong_snapshot',
      detail: `the snapshot of ${owner}: ${detail}`,
      table: 'snapshot',
      key,
    });
  }

  async #read(owner: string, foldVersion: number): Promise<Snapshot | null> {
    const snapshot = await this.#parts.ledgers.snapshot(owner);
    return snapshot?.foldVersion === foldVersion ? snapshot : null;
  }
}
