import type { LedgerEvent } from '../domain/event.ts';
import type { LedgerFacts } from '../domain/ledger-facts.ts';
import { names, type Projection, projectionsOf } from '../domain/projection.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { ScopeEntry, StoredCell, StoredLine, StoreInspection } from '../store/store-inspection.ts';
import { forEachAtOnce } from './at-once.ts';
import type { Finding, FindingType } from './finding.ts';
import { FingerprintSet } from './fingerprint-set.ts';

const readsAtOnceMax = 16;
const listPageLines = 1_000;
/** Marks that do not count for ever are there for 24 hours; near the end of that nobody can tell. */
const markSureMs = 23 * 60 * 60_000;

/** What follows from a set of ledgers, to find what is stored beside it and follows from nothing. */
export interface Expectations {
  readonly cells: FingerprintSet;
  readonly lines: FingerprintSet;
}

export const cellText = ({ key, version, value }: StoredCell): string => JSON.stringify([key, version, value]);
export const lineText = ({ list, order, value }: StoredLine): string => JSON.stringify([list, order, value]);
const scopeText = ({ scope, seq }: ScopeEntry): string => `${seq} ${scope}`;

export interface ProjectionScrubParts {
  readonly ledgerId: string;
  readonly ledgers: LedgerStore;
  readonly inspection: StoreInspection;
  /** The log is looked at up to this seq. What follows from later events is not judged. */
  readonly headSeq: number;
  /** What follows from events behind this seq may still have to be written. */
  readonly projectedSeq: number;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly found: (finding: Finding) => void;
  /** Gets what is expected of cells and lines; null: what the ledger alone names is looked through for what should not be there. */
  readonly expectations: Expectations | null;
}

/**
 * Compares what is stored beside the log of one ledger with what follows from its events. Takes the events in order, window by window;
 * remembers the newest cell of each key and 48 bits of each line and mark.
 */
export class ProjectionScrub {
  readonly #parts: ProjectionScrubParts;
  readonly #cells = new Map<string, StoredCell>();
  readonly #lines = new FingerprintSet();
  readonly #lists = new Set<string>();
  readonly #marks = new FingerprintSet();
  readonly #masters = new Set<string>();
  /** Of the events that can be read no more: what follows from them is not known. */
  #hasUnknown = false;
  #outstanding = 0;

  constructor(parts: ProjectionScrubParts) {
    this.#parts = parts;
  }

  /** Projections that are still to come, of the newest batch. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /** The events of seqs `from` to below `to`; those that are missing or damaged are left out. */
  async take(events: readonly LedgerEvent[], facts: LedgerFacts | null, from: number, to: number): Promise<void> {
    const { ledgerId, inspection, headSeq } = this.#parts;
    const wanted = new Map<string, ScopeEntry>();
    const others: [LedgerEvent, Exclude<Projection, { kind: 'scope' }>][] = [];
    for (const event of events) {
      if (event.eventType === 'TRACELEDGER_MASTER_CREATED' && event.master !== null) this.#masters.add(event.master.id);
      for (const projection of projectionsOf(event, event.seq === 0 ? null : facts)) {
        if (projection.kind !== 'scope') others.push([event, projection]);
        else {
          const entry = { scope: projection.scope, seq: event.seq };
          wanted.set(scopeText(entry), entry);
        }
      }
    }
    if (events.length < Math.min(to, headSeq + 1) - from) this.#hasUnknown = true;
    for (const entry of await inspection.scopeEntries(ledgerId, from, to)) {
      if (entry.seq > headSeq || wanted.delete(scopeText(entry))) continue;
      this.#wrong('projection_extra', entry.seq, `the event stands under ${entry.scope}, where it does not belong`);
    }
    for (const { scope, seq } of wanted.values())
      this.#missing(seq, `the event does not stand under ${scope}, where readers look for it`);
    await forEachAtOnce(others, readsAtOnceMax, ([event, projection]) => this.#takeOther(event, projection));
  }

  async #takeOther(event: LedgerEvent, projection: Exclude<Projection, { kind: 'scope' }>): Promise<void> {
    switch (projection.kind) {
      case 'cell':
        this.#expectCell({ key: projection.key, version: event.seq, value: projection.value });
        return;
      case 'line':
        await this.#line(event.seq, projection);
        return;
      case 'command':
        await this.#mark(event, projection.command);
        return;
    }
  }

  #expectCell(cell: StoredCell): void {
    // Each version: which one is the newest may change while the store is walked through.
    this.#parts.expectations?.cells.add(cellText(cell));
    const known = this.#cells.get(cell.key);
    if (known === undefined || known.version <= cell.version) this.#cells.set(cell.key, cell);
  }

  async #line(seq: number, line: StoredLine): Promise<void> {
    this.#lines.add(lineText(line));
    this.#parts.expectations?.lines.add(lineText(line));
    this.#lists.add(line.list);
    const [stored] = await this.#parts.ledgers.lines(line.list, { from: line.order, limit: 1 });
    if (stored === undefined || stored.order !== line.order) this.#missing(seq, `a line of ${line.list} is missing`);
    else if (stored.value !== line.value) this.#wrong('projection_wrong', seq, `a line of ${line.list} is another one`);
  }

  async #mark(event: LedgerEvent, mark: LedgerEvent['commands'][number]): Promise<void> {
    const { ledgers, ledgerId, nowMs } = this.#parts;
    this.#marks.add(markText({ ...mark, seq: event.seq }));
    if (!mark.permanent && Date.parse(event.createdAt) < nowMs - markSureMs) return;
    const stored = (await ledgers.findCommands(ledgerId, [mark])).get(mark.id);
    if (stored === undefined) this.#missing(event.seq, `the mark of command ${mark.id} is missing`);
    else if (stored.seq < event.seq || (stored.seq === event.seq && stored.fingerprint !== mark.fingerprint))
      this.#wrong('projection_wrong', event.seq, `the mark of command ${mark.id} is another one`);
  }

  /** To be called behind the last event. */
  async finish(): Promise<void> {
    await forEachAtOnce(this.#cells.values(), readsAtOnceMax, (cell) => this.#cell(cell));
    await this.#extraMarks();
    if (this.#parts.expectations === null) await this.#extrasByName();
  }

  async #cell(cell: StoredCell): Promise<void> {
    const stored = await this.#parts.ledgers.cell(cell.key);
    if (stored === null) this.#missing(cell.version, `${cell.key} is missing`);
    else if (stored.version < cell.version)
      this.#missing(cell.version, `${cell.key} is as of seq ${stored.version}, before this event`);
    else if (stored.version === cell.version && stored.value !== cell.value)
      this.#wrong('projection_wrong', cell.version, `${cell.key} is not what the event says`);
    else if (stored.version > cell.version && stored.version <= this.#parts.headSeq)
      this.#wrong(
        'projection_wrong',
        stored.version,
        `${cell.key} says that it is from an event that does not change it`,
      );
  }

  async #extraMarks(): Promise<void> {
    const { inspection, ledgerId, headSeq } = this.#parts;
    for await (const mark of inspection.commandMarks(ledgerId))
      if (mark.seq <= headSeq && !this.#marks.has(markText(mark)))
        this.#extra(mark.seq, `a mark of command ${mark.id} is of no event`);
  }

  /** What can be found without walking through the whole store: lists of this ledger, and states that it has not come to. */
  async #extrasByName(): Promise<void> {
    const { ledgers, ledgerId, headSeq } = this.#parts;
    const closings = [names.ledgerClosed(ledgerId), ...[...this.#masters].map(names.masterClosed)];
    await forEachAtOnce(closings, readsAtOnceMax, async (key) => {
      const stored = this.#cells.has(key) ? null : await ledgers.cell(key);
      if (stored !== null && stored.version <= headSeq) this.#extra(stored.version, `${key} follows from no event`);
    });
    for (const list of this.#lists) await this.#extraLines(list);
  }

  async #extraLines(list: string): Promise<void> {
    const { ledgers, ledgerId } = this.#parts;
    const isShared = list.startsWith(names.ledgersOf(''));
    for (let from: string | undefined; ; ) {
      const page = { limit: listPageLines, ...(from === undefined ? {} : { from }) };
      const lines = await ledgers.lines(list, page);
      for (const { order, value } of lines) {
        if (order === from || this.#lines.has(lineText({ list, order, value }))) continue;
        if (isShared ? !order.split('|').includes(ledgerId) : this.#isNewer(order)) continue;
        this.#extra(null, `a line of ${list} follows from no event`);
      }
      const last = lines.at(-1)?.order;
      if (last === undefined || last === from || lines.length < listPageLines) return;
      from = last;
    }
  }

  /** Lists in the order of events: whether the line is of an event behind the head that was looked at. */
  #isNewer(order: string): boolean {
    return /^\d{16}$/.test(order) && Number(order) > this.#parts.headSeq;
  }

  #missing(seq: number, detail: string): void {
    if (seq > this.#parts.projectedSeq) this.#outstanding += 1;
    else this.#wrong('projection_missing', seq, detail);
  }

  #extra(seq: number | null, detail: string): void {
    const why = this.#hasUnknown ? ' (or from one that is missing or damaged)' : '';
    this.#wrong('projection_extra', seq, `${detail}${why}`);
  }

  #wrong(type: FindingType, seq: number | null, detail: string): void {
    this.#parts.found({ ledgerId: this.#parts.ledgerId, seq, type, detail });
  }
}

function markText({ id, seq, fingerprint }: { id: string; seq: number; fingerprint: string }): string {
  return JSON.stringify([id, seq, fingerprint]);
}
