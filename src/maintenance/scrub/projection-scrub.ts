import type { LedgerEvent } from '../../domain/event/event.ts';
import type { LedgerFacts } from '../../domain/event/facts.ts';
import { names, type Projection, projectionsOf } from '../../domain/event/projection.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { linePages } from '../../store/pages.ts';
import type {
  EventProjections,
  ScopeEntry,
  StoredCell,
  StoredCommandKey,
  StoredLine,
  StoreInspection,
} from '../../store/store-inspection.ts';
import { forEachConcurrently } from '../for-each-concurrently.ts';
import type { Finding, FindingType } from './finding.ts';
import { FingerprintSet } from './fingerprint-set.ts';

const readsAtOnceMax = 16;
const listPageLines = 1_000;
/**
 * Milliseconds. Command keys that are not permanent are kept for 24 hours. Near their end a missing one is no fault.
 */
const keySureMs = 23 * 60 * 60_000;

/** The cells and lines that follow from the events of a set of ledgers. */
export interface Expectations {
  readonly cells: FingerprintSet;
  readonly lines: FingerprintSet;
}

export const cellText = ({ key, version, value }: StoredCell): string => JSON.stringify([key, version, value]);
export const lineText = ({ list, order, value }: StoredLine): string => JSON.stringify([list, order, value]);

const scopeText = ({ scope, seq }: ScopeEntry): string => `${seq} ${scope}`;
const keyText = ({ id, seq, fingerprint }: StoredCommandKey): string => JSON.stringify([id, seq, fingerprint]);

interface ProjectionScrubParts {
  readonly ledgerId: string;
  readonly ledgers: LedgerStore;
  readonly inspection: StoreInspection;
  /** The log is read up to this seq. What follows from events that are appended later is not checked. */
  readonly headSeq: number;
  /** Projections of events after this seq may not be written yet. */
  readonly projectedSeq: number;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly found: (finding: Finding) => void;
  /** Collects the expected cells and lines. null: looks for extra ones here, by the names of this ledger only. */
  readonly expectations: Expectations | null;
  /**
   * Receives the missing projections: after each window those that are known by then, at the end the missing cells.
   * Extra projections are not looked for then. null: missing projections are reported only.
   */
  readonly missing: ((projections: readonly EventProjections[]) => Promise<void>) | null;
}

/**
 * Compares the stored projections of one ledger with what follows from its events. Keeps in memory the newest cell of
 * each key, and 48 bits of each line and command key.
 */
export class ProjectionScrub {
  readonly #parts: ProjectionScrubParts;
  readonly #cells = new Map<string, StoredCell>();
  readonly #lines = new FingerprintSet();
  readonly #lists = new Set<string>();
  readonly #keys = new FingerprintSet();
  readonly #masters = new Set<string>();
  /** Whether events are missing or damaged, so that what follows from them is not known. */
  #hasUnknown = false;
  /** How many projections of the newest batch are not written yet. */
  outstanding = 0;
  /** How many projections of earlier batches are missing. */
  missing = 0;
  /** The newest event that the log is known to have. */
  #end: number;
  /** Missing projections that were not passed on yet. */
  #notPassedOn: EventProjections[] = [];

  constructor(parts: ProjectionScrubParts) {
    this.#parts = parts;
    this.#end = parts.headSeq;
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
      const { scope, seq } = entry;
      const detail = `the event stands under ${scope}, where it does not belong`;
      this.#wrong('projection_extra', seq, detail, { kind: 'scope', scope });
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
        await this.#commandKey(event, projection);
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

  async #commandKey(event: LedgerEvent, projection: Extract<Projection, { kind: 'command' }>): Promise<void> {
    const key = projection.command;
    const { ledgers, ledgerId, nowMs } = this.#parts;
    this.#keys.add(keyText({ ...key, seq: event.seq }));
    if (!key.permanent && Date.parse(event.createdAt) < nowMs - keySureMs) return;
    const stored = (await ledgers.findCommands(ledgerId, [key])).get(key.id);
    if (stored === undefined) this.#lacks(event.seq, projection, `the command key ${key.id} is missing`);
    else if (stored.seq < event.seq || (stored.seq === event.seq && stored.fingerprint !== key.fingerprint))
      this.#wrong('projection_wrong', event.seq, `the command key ${key.id} is another one`, projection);
  }

  /** Must be called after the last event. */
  async finish(): Promise<void> {
    await forEachConcurrently(this.#cells.values(), readsAtOnceMax, (cell) => this.#cell(cell));
    await this.#handOn();
    if (this.#parts.missing !== null) return;
    await this.#extraKeys();
    if (this.#parts.expectations !== null) return;
    await this.#extrasByName();
    await this.#times();
  }

  async #cell(cell: StoredCell): Promise<void> {
    const { key, value } = cell;
    const of: Projection = { kind: 'cell', key, value };
    const stored = await this.#parts.ledgers.cell(key);
    if (stored === null) this.#lacks(cell.version, of, `${key} is missing`);
    else if (stored.version < cell.version)
      this.#lacks(cell.version, of, `${key} is as of seq ${stored.version}, before this event`);
    else if (stored.version === cell.version && stored.value !== cell.value)
      this.#wrong('projection_wrong', stored.version, `${key} is not what the event says`, of);
    else if (stored.version > cell.version && !(await this.#isOfLaterEvent(stored.version)))
      this.#wrong(
        'projection_wrong',
        stored.version,
        `${key} says that it is from an event that does not change it`,
        of,
      );
  }

  /**
   * Whether an event of this seq was appended since the log was read, so that what follows from it is not known. Call
   * it after the projection was read that says this seq: a projection is written after its event.
   */
  async #isOfLaterEvent(seq: number): Promise<boolean> {
    const { ledgers, ledgerId, headSeq } = this.#parts;
    if (seq > this.#end) this.#end = Math.max(this.#end, (await ledgers.head(ledgerId))?.seq ?? -1);
    return seq > headSeq && seq <= this.#end;
  }

  async #extraKeys(): Promise<void> {
    const { inspection, ledgerId } = this.#parts;
    for await (const key of inspection.commandKeys(ledgerId))
      if (!this.#keys.has(keyText(key)) && !(await this.#isOfLaterEvent(key.seq)))
        this.#extra(key.seq, `the command key ${key.id} is of no event`);
  }

  /** Finds extra lines in the lists of the ledger, and closings of the ledger or a master that no event closed. */
  async #extrasByName(): Promise<void> {
    const { ledgers, ledgerId } = this.#parts;
    const closings = [names.ledgerClosed(ledgerId), ...[...this.#masters].map(names.masterClosed)];
    await forEachConcurrently(closings, readsAtOnceMax, async (key) => {
      const stored = this.#cells.has(key) ? null : await ledgers.cell(key);
      if (stored !== null && !(await this.#isOfLaterEvent(stored.version)))
        this.#extra(stored.version, `${key} follows from no event`);
    });
    for (const list of this.#lists) {
      const isShared = list.startsWith(names.ledgersOf(''));
      // Other lists are ordered by event. Lines of events that were appended meanwhile are not checked.
      const isOther = async (order: string) =>
        isShared
          ? !order.split('|').includes(ledgerId)
          : /^\d{16}$/.test(order) && (await this.#isOfLaterEvent(Number(order)));
      for await (const { lines } of linePages(ledgers, list, listPageLines))
        for (const { order, value } of lines)
          if (!this.#lines.has(lineText({ list, order, value })) && !(await isOther(order)))
            this.#extra(null, `a line of ${list} follows from no event`);
    }
  }

  /** Checks the times of all that has a name in the events. A scrub of all ledgers walks through the tables instead. */
  async #times(): Promise<void> {
    const { ledgerId, inspection, found } = this.#parts;
    const shared = names.ledgersOf('');
    const named = {
      ...{ ledgerId, cells: this.#cells.keys(), lists: this.#lists, owners: [ledgerId, ...this.#masters] },
      isOwnLine: (list: string, order: string) => !list.startsWith(shared) || order.split('|').includes(ledgerId),
    };
    for await (const row of inspection.misdatedRows(named)) found({ ...row, ledgerId });
  }

  #lacks(seq: number, projection: Projection, detail: string): void {
    if (this.#parts.missing !== null) this.#notPassedOn.push({ seq, projections: [projection] });
    if (seq > this.#parts.projectedSeq) this.outstanding += 1;
    else {
      this.missing += 1;
      this.#wrong('projection_missing', seq, detail, projection);
    }
  }

  async #handOn(): Promise<void> {
    const missing = this.#notPassedOn;
    this.#notPassedOn = [];
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
