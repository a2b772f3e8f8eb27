import type { LedgerEvent } from '../../domain/event/event.ts';
import type { LedgerFacts } from '../../domain/event/ledger-facts.ts';
import { type Projection, projectionsOf } from '../../domain/event/projection.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { EventProjections } from '../../store/projection-writer.ts';
import type { ScopeEntry, StoredCell, StoreInspection } from '../../store/store-inspection.ts';
import { cellText, type Expectations, lineText } from './expectations.ts';
import { findExtrasByName } from './extras-by-name.ts';
import type { Finding, FindingType } from './finding.ts';
import { FingerprintSet } from './fingerprint-set.ts';
import { forEachConcurrently } from './for-each-concurrently.ts';

const readsAtOnceMax = 16;
/**
 * Milliseconds. Command keys that are not permanent are kept for 24 hours. Younger ones than this must be there; near
 * the end of the 24 hours a missing one is no fault.
 */
const markSureMs = 23 * 60 * 60_000;

const scopeText = ({ scope, seq }: ScopeEntry): string => `${seq} ${scope}`;

interface ProjectionScrubParts {
  readonly ledgerId: string;
  readonly ledgers: LedgerStore;
  readonly inspection: StoreInspection;
  /** The log is read up to this seq. What follows from later events is not checked. */
  readonly headSeq: number;
  /** Projections of events after this seq may not be written yet. */
  readonly projectedSeq: number;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly found: (finding: Finding) => void;
  /**
   * Collects the expected cells and lines. null: extra projections are looked for here, but only by the names that
   * belong to this ledger.
   */
  readonly expectations: Expectations | null;
  /**
   * Receives the missing projections: after each window those that are known by then, and at the end the missing cells.
   * Extra projections are not looked for then. null: missing projections are reported only.
   */
  readonly missing: ((projections: readonly EventProjections[]) => Promise<void>) | null;
}

/**
 * Compares the stored projections of one ledger with what follows from its events. Takes the events in order, window by
 * window. Keeps in memory the newest cell of each key, and 48 bits of each line and command key.
 */
export class ProjectionScrub {
  readonly #parts: ProjectionScrubParts;
  readonly #cells = new Map<string, StoredCell>();
  readonly #lines = new FingerprintSet();
  readonly #lists = new Set<string>();
  readonly #marks = new FingerprintSet();
  readonly #masters = new Set<string>();
  /** Whether events are missing or damaged, so that what follows from them is not known. */
  #hasUnknown = false;
  #outstanding = 0;
  #missingCount = 0;
  /** Missing projections that were not passed on yet. */
  #missing: EventProjections[] = [];

  constructor(parts: ProjectionScrubParts) {
    this.#parts = parts;
  }

  /** How many projections of the newest batch are not written yet. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /** How many projections of earlier batches are missing. */
  get missing(): number {
    return this.#missingCount;
  }

  /** Takes the events of seqs `from` to below `to`, without those that are missing or damaged. */
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
      this.#wrong('projection_extra', entry.seq, `the event stands under ${entry.scope}, where it does not belong`, {
        kind: 'scope',
        scope: entry.scope,
      });
    }
    for (const { scope, seq } of wanted.values())
      this.#lacks(seq, { kind: 'scope', scope }, `the event does not stand under ${scope}, where readers look for it`);
    await forEachConcurrently(others, readsAtOnceMax, ([event, projection]) => this.#takeOther(event, projection));
    await this.#handOn();
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
        await this.#mark(event, projection);
        return;
    }
  }

  #expectCell(cell: StoredCell): void {
    // Every version is expected, because the newest one may change while the store is read.
    this.#parts.expectations?.cells.add(cellText(cell));
    const known = this.#cells.get(cell.key);
    if (known === undefined || known.version <= cell.version) this.#cells.set(cell.key, cell);
  }

  async #line(seq: number, line: Extract<Projection, { kind: 'line' }>): Promise<void> {
    this.#lines.add(lineText(line));
    this.#parts.expectations?.lines.add(lineText(line));
    this.#lists.add(line.list);
    const [stored] = await this.#parts.ledgers.lines(line.list, { from: line.order, limit: 1 });
    if (stored === undefined || stored.order !== line.order)
      this.#lacks(seq, line, `a line of ${line.list} is missing`);
    else if (stored.value !== line.value)
      this.#wrong('projection_wrong', seq, `a line of ${line.list} is another one`, line);
  }

  async #mark(event: LedgerEvent, projection: Extract<Projection, { kind: 'command' }>): Promise<void> {
    const mark = projection.command;
    const { ledgers, ledgerId, nowMs } = this.#parts;
    this.#marks.add(markText({ ...mark, seq: event.seq }));
    if (!mark.permanent && Date.parse(event.createdAt) < nowMs - markSureMs) return;
    const stored = (await ledgers.findCommands(ledgerId, [mark])).get(mark.id);
    if (stored === undefined) this.#lacks(event.seq, projection, `the mark of command ${mark.id} is missing`);
    else if (stored.seq < event.seq || (stored.seq === event.seq && stored.fingerprint !== mark.fingerprint))
      this.#wrong('projection_wrong', event.seq, `the mark of command ${mark.id} is another one`, projection);
  }

  /** Must be called after the last event. */
  async finish(): Promise<void> {
    await forEachConcurrently(this.#cells.values(), readsAtOnceMax, (cell) => this.#cell(cell));
    await this.#handOn();
    if (this.#parts.missing !== null) return;
    await this.#extraMarks();
    if (this.#parts.expectations !== null) return;
    const extra = (seq: number | null, detail: string) => this.#extra(seq, detail);
    const expected = { cells: this.#cells, masters: this.#masters, lists: this.#lists, lines: this.#lines };
    await findExtrasByName({ ...this.#parts, extra }, expected);
  }

  async #cell(cell: StoredCell): Promise<void> {
    const stored = await this.#parts.ledgers.cell(cell.key);
    if (stored === null || stored.version < cell.version)
      this.#lacks(
        cell.version,
        { kind: 'cell', key: cell.key, value: cell.value },
        stored === null ? `${cell.key} is missing` : `${cell.key} is as of seq ${stored.version}, before this event`,
      );
    else if (stored.version === cell.version && stored.value !== cell.value)
      this.#wrong('projection_wrong', cell.version, `${cell.key} is not what the event says`, {
        kind: 'cell',
        ...cell,
      });
    else if (stored.version > cell.version && stored.version <= this.#parts.headSeq)
      this.#wrong(
        'projection_wrong',
        stored.version,
        `${cell.key} says that it is from an event that does not change it`,
        { kind: 'cell', ...cell },
      );
  }

  async #extraMarks(): Promise<void> {
    const { inspection, ledgerId, headSeq } = this.#parts;
    for await (const mark of inspection.commandKeys(ledgerId))
      if (mark.seq <= headSeq && !this.#marks.has(markText(mark)))
        this.#extra(mark.seq, `a mark of command ${mark.id} is of no event`);
  }

  #lacks(seq: number, projection: Projection, detail: string): void {
    if (this.#parts.missing !== null) this.#missing.push({ seq, projections: [projection] });
    if (seq > this.#parts.projectedSeq) {
      this.#outstanding += 1;
      return;
    }
    this.#missingCount += 1;
    this.#wrong('projection_missing', seq, detail, projection);
  }

  async #handOn(): Promise<void> {
    const missing = this.#missing;
    this.#missing = [];
    if (missing.length > 0) await this.#parts.missing?.(missing);
  }

  #extra(seq: number | null, detail: string): void {
    const why = this.#hasUnknown ? ' (or from one that is missing or damaged)' : '';
    this.#wrong('projection_extra', seq, `${detail}${why}`);
  }

  #wrong(type: FindingType, seq: number | null, detail: string, of?: Projection): void {
    const { ledgerId, found } = this.#parts;
    found({ ledgerId, seq, type, detail, ...(of === undefined ? {} : placeOf(ledgerId, of)) });
  }
}

/** The table and key of a projection. */
function placeOf(ledgerId: string, of: Projection): { readonly table: string; readonly key: string } {
  switch (of.kind) {
    case 'scope':
      return { table: 'scope_bucket', key: `ledger_id=${ledgerId}, scope=${of.scope}` };
    case 'command':
      return { table: 'command', key: `ledger_id=${ledgerId}, id=${of.command.id}` };
    case 'cell':
      return { table: 'cell', key: `key=${of.key}` };
    case 'line':
      return { table: 'line', key: `list=${of.list}, line_order=${of.order}` };
  }
}

function markText({ id, seq, fingerprint }: { id: string; seq: number; fingerprint: string }): string {
  return JSON.stringify([id, seq, fingerprint]);
}
