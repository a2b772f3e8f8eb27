import { commandKeyLifeMs } from '../../../src/domain/event/event.ts';
import {
  type Cell,
  type Claim,
  type CommandKeyRef,
  Fenced,
  type FoundCommand,
  type Head,
  type LedgerEntry,
  type LedgerStore,
  type Line,
  type Page,
  type ScopeEntries,
  type ScopePage,
  type Snapshot,
  type StoredEntry,
} from '../../../src/store/ledger-store.ts';
import { charsOf } from '../../../src/store/pages.ts';
import { compareText } from '../../../src/store/store-text.ts';
import { checkEntryRun } from '../../../src/store/write-checks.ts';
import { applyEntries, checkProjections } from './append.ts';
import { emptyLedgerData, type KeptCommand, ledgerIn, type MemoryLedgerData } from './ledger-data.ts';
import { cutBehind, partOf } from './pages.ts';

/**
 * Ledgers in memory, for tests. It is stricter than any real store: it copies and freezes its data, forgets commands
 * after exactly 24 hours and never answers synchronously. It throws TypeError for mistakes that real stores do not
 * notice: two appends of a claim at once, and two values under one order of a list.
 */
export class MemoryLedgerStore implements LedgerStore {
  readonly #data: MemoryLedgerData;
  readonly #now: () => number;

  /** `now` returns milliseconds since 1970. */
  constructor(now: () => number, data: MemoryLedgerData = emptyLedgerData()) {
    this.#data = data;
    this.#now = now;
  }

  async claim(ledgerId: string): Promise<Claim> {
    await later();
    const ledger = ledgerIn(this.#data, ledgerId);
    ledger.claims++;
    return Object.freeze({ ledgerId, fence: String(ledger.claims), head: ledger.head });
  }

  async append(claim: Claim, entries: readonly LedgerEntry[]): Promise<void> {
    const copied = structuredClone(entries);
    const { first } = checkEntryRun(copied);
    const ledger = ledgerIn(this.#data, claim.ledgerId);
    if (ledger.appendUnderWay === claim.fence) throw new TypeError('An append of this claim is under way');
    const own = claim.fence === String(ledger.claims);
    if (own) ledger.appendUnderWay = claim.fence;
    try {
      await later();
      const before = first.seq === 0 ? null : { seq: first.seq - 1, hash: first.prevHash };
      if (!this.#isAt(claim, before)) throw new Fenced();
      checkProjections(this.#data, copied);
      applyEntries(this.#data, ledger, copied, this.#now());
    } finally {
      if (own && ledger.appendUnderWay === claim.fence) ledger.appendUnderWay = null;
    }
    await later();
  }

  async stands(claim: Claim, head: Head | null): Promise<boolean> {
    await later();
    return this.#isAt(claim, head);
  }

  async head(ledgerId: string): Promise<Head | null> {
    await later();
    return this.#data.ledgers.get(ledgerId)?.head ?? null;
  }

  certainHead(ledgerId: string): Promise<Head | null> {
    return this.head(ledgerId);
  }

  async read(ledgerId: string, from: number, limit: number, charsMax?: number): Promise<StoredEntry[]> {
    await later();
    const ledger = this.#data.ledgers.get(ledgerId);
    const found: StoredEntry[] = [];
    for (let seq = from; seq <= (ledger?.head?.seq ?? -1) && found.length < limit; seq++) {
      const entry = ledger?.entries.get(seq);
      if (entry !== undefined) found.push(entry);
    }
    return cutBehind(found, charsMax);
  }

  async readScope(ledgerId: string, scope: string, page: ScopePage): Promise<ScopeEntries> {
    const seqs = await this.scopeSeqs(ledgerId, scope, page);
    const ledger = this.#data.ledgers.get(ledgerId);
    const entries: StoredEntry[] = [];
    const missing: number[] = [];
    for (const seq of seqs) {
      const entry = ledger?.entries.get(seq);
      if (entry === undefined) missing.push(seq);
      else entries.push(entry);
      if (charsOf(entries) >= (page.charsMax ?? Number.POSITIVE_INFINITY)) break;
    }
    return { entries, missing };
  }

  async scopeSeqs(ledgerId: string, scope: string, page: ScopePage): Promise<number[]> {
    await later();
    const { from = page.descending === true ? Number.POSITIVE_INFINITY : 0 } = page;
    const startsAt = (seq: number) => (page.descending === true ? seq <= from : seq >= from);
    return partOf([...(this.#data.ledgers.get(ledgerId)?.scopes.get(scope) ?? [])], { ...page, startsAt });
  }

  async findCommands(ledgerId: string, commandKeys: readonly CommandKeyRef[]): Promise<Map<string, FoundCommand>> {
    await later();
    const ledger = this.#data.ledgers.get(ledgerId);
    const found = new Map<string, FoundCommand>();
    for (const { id, permanent } of commandKeys) {
      const command = permanent ? ledger?.permanentCommands.get(id) : this.#commandOf(ledger?.commands.get(id));
      if (command !== undefined) found.set(id, { seq: command.seq, fingerprint: command.fingerprint });
    }
    return found;
  }

  #commandOf(kept: KeptCommand | undefined): FoundCommand | undefined {
    return kept !== undefined && this.#now() - kept.at <= commandKeyLifeMs ? kept : undefined;
  }

  async cell(key: string): Promise<Cell | null> {
    await later();
    return this.#data.cells.get(key) ?? null;
  }

  async lines(list: string, page: Page): Promise<Line[]> {
    await later();
    const lines = [...(this.#data.lines.get(list) ?? [])].map(([order, value]) => ({ order, value }));
    lines.sort((a, b) => compareText(a.order, b.order));
    const { from } = page;
    const startsAt = ({ order }: Line) => from === undefined || sign(page.descending) * compareText(order, from) >= 0;
    return cutBehind(partOf(lines, { ...page, startsAt }), page.charsMax);
  }

  async snapshot(owner: string): Promise<Snapshot | null> {
    await later();
    return this.#data.snapshots.get(owner) ?? null;
  }

  async saveSnapshot(owner: string, snapshot: Snapshot): Promise<void> {
    const copied = Object.freeze({ ...snapshot });
    await later();
    const stored = this.#data.snapshots.get(owner);
    if (stored?.foldVersion === copied.foldVersion && stored.seq > copied.seq) return;
    this.#data.snapshots.set(owner, copied);
  }

  #isAt(claim: Claim, head: Head | null): boolean {
    const ledger = ledgerIn(this.#data, claim.ledgerId);
    const { claims, head: stored } = ledger;
    return claim.fence === String(claims) && stored?.seq === head?.seq && stored?.hash === head?.hash;
  }
}

function sign(descending = false): 1 | -1 {
  return descending ? -1 : 1;
}

/** Waits for a microtask, because no real store answers synchronously. */
function later(): Promise<void> {
  return Promise.resolve();
}
