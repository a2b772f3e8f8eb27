import { UUID_V7_RANDOM_BYTES, UUID_V7_TIME_MAX, uuidV7, uuidV7Time } from '../../../domain/values/uuid.ts';
import { type AccessEvent, type AccessLog, type AccessPage, type AccessReading, accessTime } from '../../access-log.ts';
import { checkAccessOrder } from '../../write-checks.ts';
import { accessHour, accessHourMs, keyText } from '../keys.ts';
import { keptFromHourFact, keptFromHourIn } from '../schema/fact-values.ts';
import { ClusterFacts } from '../session/facts.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { type CqlSession, eachAtOnce, intMax, numberOf, type Row, type Statement, textOf } from '../session/session.ts';
import {
  type AccessBlock,
  accessBlocks,
  blockEventsMax,
  blockSpanMs,
  eventsInOrder,
  formatAccessEvents,
} from './access-block.ts';

const ADD_BLOCK = preparedAtStart(
  'INSERT INTO access_block (actor_id, hour, ledger_id, first_id, count, events) VALUES (?, ?, ?, ?, ?, ?)',
);
const ADD_HOUR = preparedAtStart('INSERT INTO access_hour (actor_id, hour) VALUES (?, ?)');
const HOURS_UP = 'SELECT hour FROM access_hour WHERE actor_id = ? AND hour >= ? LIMIT ?';
const HOURS_DOWN =
  'SELECT hour FROM access_hour WHERE actor_id = ? AND hour >= ? AND hour <= ? ORDER BY hour DESC LIMIT ?';
const OF_SPAN =
  'FROM access_block WHERE actor_id = ? AND hour = ? AND ledger_id = ? AND first_id >= ? AND first_id < ?';
const UP = `SELECT first_id, events ${OF_SPAN} LIMIT ?`;
const DOWN = `SELECT first_id, events ${OF_SPAN} ORDER BY ledger_id DESC, first_id DESC LIMIT ?`;
const COUNT_UP = `SELECT first_id, count ${OF_SPAN} LIMIT ?`;
const COUNT_DOWN = `SELECT first_id, count ${OF_SPAN} ORDER BY ledger_id DESC, first_id DESC LIMIT ?`;

/** Value of ledger_id in the rows of an actor's whole history. */
const WHOLE = '';
const lastHour = intMax;
const hoursAtOnce = 16;
/** Blocks that are read at once: an actor may have made millions of calls in an hour. */
const blocksAtOnce = 256;
/** Blocks that are counted at once. */
const countedAtOnce = 5_000;
const writesAtOnceMax = 16;
/** Most (actor, hour) pairs remembered as listed. */
const hoursKnownMax = 20_000;

/**
 * The access histories of a keyspace. Each actor and hour has a partition with blocks of events, stored once for the
 * whole history and once for each ledger. Rows are removed by their TTL. A sweep only raises the hour from which on
 * events are shown (a fact), up to the retention time.
 */
export class CassandraAccessLog implements AccessLog {
  readonly #session: CqlSession;
  readonly #facts: ClusterFacts;
  readonly #now: () => number;
  readonly #knownHours = new Set<string>();

  /** `now`: milliseconds since 1970. */
  constructor(session: CqlSession, now: () => number) {
    this.#session = session;
    this.#facts = new ClusterFacts(session);
    this.#now = now;
  }

  async append(events: readonly AccessEvent[]): Promise<void> {
    checkAccessOrder(events);
    const partitions = Map.groupBy(accessBlocks(events), ({ actorId, hour }) => `${hour} ${actorId}`);
    await eachAtOnce([...partitions], writesAtOnceMax, ([name, blocks]) => this.#write(name, blocks));
  }

  async #write(name: string, blocks: readonly AccessBlock[]): Promise<void> {
    const [first] = blocks;
    if (first === undefined) return;
    // Listed before its blocks are written, because readers only read hours that are listed.
    if (!this.#knownHours.has(name)) {
      await this.#session.write([{ cql: ADD_HOUR, params: [keyText(first.actorId), first.hour] }]);
      if (this.#knownHours.size >= hoursKnownMax) this.#knownHours.clear();
      this.#knownHours.add(name);
    }
    await this.#session.write(blocks.flatMap(blockStatements));
  }

  async list(actorId: string, page: AccessPage, reading?: AccessReading): Promise<AccessEvent[]> {
    const { ledgerId, since, limit, descending } = page;
    if (limit <= 0) return [];
    const keptFrom = keptFromHourIn(await this.#facts.get(keptFromHourFact), this.#now());
    const from = Math.max(accessHour(Math.max(0, since)), keptFrom ?? 0);
    const ledger = ledgerId === null ? WHOLE : keyText(ledgerId);
    const found: AccessEvent[] = [];
    let skip = page.offset;
    for await (const hour of this.#hours(actorId, from, descending)) {
      reading?.signal.throwIfAborted();
      const key = [keyText(actorId), hour, ledger];
      const hourMs = hour * accessHourMs;
      let span = idsBetween(Math.max(hourMs, secondOf(since)), hourMs + accessHourMs);
      // Only the first hour may hold events before `since`.
      if (skip > 0 && hourMs >= since) {
        const rest = await this.#skip(key, span, skip, descending, reading);
        skip = rest.skip;
        if (rest.span === null) continue;
        span = rest.span;
      }
      for await (const texts of this.#texts(key, span, descending, reading)) {
        reading?.examined(texts.length);
        for (const event of eventsInOrder(actorId, texts, descending)) {
          reading?.examined(1);
          if (accessTime(event.id) < since) continue;
          if (skip > 0) skip -= 1;
          else if (found.push(event) === limit) return found;
        }
      }
    }
    return found;
  }

  /**
   * Skips whole seconds of events by the counts of their blocks. Returns what is left of `skip` and of the span; null:
   * nothing.
   */
  async #skip(
    key: readonly unknown[],
    span: Ids,
    skip: number,
    descending: boolean,
    reading: AccessReading | undefined,
  ): Promise<{ readonly span: Ids | null; readonly skip: number }> {
    const cql = descending ? COUNT_DOWN : COUNT_UP;
    let rest = span;
    let left = skip;
    let second = { atMs: Number.NaN, left };
    for (;;) {
      reading?.signal.throwIfAborted();
      const rows = await this.#read(cql, key, rest, countedAtOnce, { pageRows: countedAtOnce });
      reading?.examined(rows.length);
      for (const row of rows) {
        const ms = timeOf(row);
        const count = numberOf(row, 'count') ?? 0;
        if (ms !== null && secondOf(ms) !== second.atMs) second = { atMs: secondOf(ms), left };
        left -= count;
        if (ms !== null && count >= 1 && count <= blockEventsMax && left >= 0) continue;
        // The page begins in this second. Of a damaged block it is not known how many events it has.
        if (Number.isNaN(second.atMs)) return { span, skip };
        const ids = idsBetween(second.atMs, second.atMs + blockSpanMs);
        return {
          span: descending ? { from: span.from, end: ids.end } : { from: ids.from, end: span.end },
          skip: second.left,
        };
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < countedAtOnce) return { span: null, skip: left };
      rest = behind(rest, last, descending);
    }
  }

  /**
   * The texts of the span's blocks, in parts that do not overlap: blocks that were written before they had blockSpanMs
   * may.
   */
  async *#texts(
    key: readonly unknown[],
    span: Ids,
    descending: boolean,
    reading: AccessReading | undefined,
  ): AsyncGenerator<string[]> {
    let rest = span;
    const cql = descending ? DOWN : UP;
    for (;;) {
      reading?.signal.throwIfAborted();
      const rows = await this.#read(cql, key, rest, blocksAtOnce + 1);
      const last = rows.at(-1);
      if (last === undefined || rows.length <= blocksAtOnce) {
        yield textsOf(rows);
        return;
      }
      const lastMs = timeOf(rows.findLast((row) => timeOf(row) !== null));
      if (lastMs === null) {
        // Damaged ids have no order in time.
        yield textsOf(rows);
        rest = behind(rest, last, descending);
        continue;
      }
      // More blocks of the last one's second may follow.
      const second = idsBetween(secondOf(lastMs), secondOf(lastMs) + blockSpanMs);
      const before = rows.filter((row) => (descending ? idOf(row) >= second.end : idOf(row) < second.from));
      yield textsOf(before.length > 0 ? before : await this.#read(cql, key, second, intMax));
      const [near, far] = descending ? [second.end, second.from] : [second.from, second.end];
      const at = before.length > 0 ? near : far;
      rest = descending ? { ...rest, end: at } : { ...rest, from: at };
    }
  }

  #read(cql: string, key: readonly unknown[], { from, end }: Ids, limit: number, options = {}): Promise<Row[]> {
    return this.#session.read({ cql, params: [...key, from, end, limit] }, options);
  }

  async sweep(before: number): Promise<number> {
    const hour = accessHour(Math.max(0, before));
    const stored = await this.#facts.get(keptFromHourFact);
    const kept = keptFromHourIn(stored, this.#now()) ?? 0;
    if (hour <= kept) return 0;
    // Conditional, because only a condition replaces a value whatever its timestamp.
    const moved = await this.#facts.move(keptFromHourFact, stored, String(hour));
    if (moved !== String(hour)) return 0;
    return kept === 0 ? 1 : hour - kept;
  }

  /** The hours from `from` on in which an actor has blocks, in the order of reading. */
  async *#hours(actorId: string, from: number, descending: boolean): AsyncGenerator<number> {
    for (let start = descending ? lastHour : from; ; ) {
      const key = keyText(actorId);
      const rows = await this.#session.read(
        descending
          ? { cql: HOURS_DOWN, params: [key, from, start, hoursAtOnce] }
          : { cql: HOURS_UP, params: [key, start, hoursAtOnce] },
      );
      const hours = rows.map((row) => numberOf(row, 'hour') ?? 0);
      yield* hours;
      const last = hours.at(-1);
      if (last === undefined || last === lastHour || hours.length < hoursAtOnce) return;
      start = descending ? last - 1 : last + 1;
    }
  }
}

/** Of blocks by their `first_id`; `end` is not among them. */
interface Ids {
  readonly from: string;
  readonly end: string;
}

/** The ids of a time, ms since 1970; `endMs` is not in it. */
function idsBetween(fromMs: number, endMs: number): Ids {
  const [from = '', end = ''] = [fromMs, endMs].map((ms) =>
    uuidV7(Math.min(ms, UUID_V7_TIME_MAX), new Uint8Array(UUID_V7_RANDOM_BYTES)),
  );
  return { from, end };
}

function secondOf(ms: number): number {
  return ms - (ms % blockSpanMs);
}

function idOf(row: Row): string {
  return textOf(row, 'first_id') ?? '';
}

/** What is left of these behind a row, in the direction of reading. No id is between one and itself with a NUL. */
function behind(ids: Ids, row: Row, descending: boolean): Ids {
  return descending ? { ...ids, end: idOf(row) } : { ...ids, from: `${idOf(row)}\0` };
}

/** When a block begins. null: its id is damaged. */
function timeOf(row: Row | undefined): number | null {
  return uuidV7Time(textOf(row, 'first_id') ?? '');
}

function textsOf(rows: readonly Row[]): string[] {
  return rows.flatMap((row) => textOf(row, 'events') ?? []);
}

function blockStatements({ actorId, hour, events }: AccessBlock): Statement[] {
  const rowOf = (ledger: string, of: readonly AccessEvent[]): Statement => {
    const params = [keyText(actorId), hour, ledger, of[0]?.id ?? '', of.length, formatAccessEvents(of)];
    return { cql: ADD_BLOCK, params };
  };
  const statements = [rowOf(WHOLE, events)];
  for (const [ledgerId, own] of Map.groupBy(events, (event) => event.ledgerId))
    if (ledgerId !== null) statements.push(rowOf(keyText(ledgerId), own));
  return statements;
}
