import { UUID_V7_RANDOM_BYTES, UUID_V7_TIME_MAX, uuidV7, uuidV7Time } from '../../../domain/values/uuid.ts';
import { type AccessEvent, type AccessLog, type AccessPage, accessTime } from '../../access-log.ts';
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
const COUNTS = `SELECT count ${OF_SPAN} LIMIT ?`;
const SUM =
  'SELECT sum(count) AS events, min(count) AS least, max(count) AS most, count(count) AS counted, count(*) AS blocks ' +
  OF_SPAN;

/** Value of ledger_id in the rows of an actor's whole history. */
const WHOLE = '';
const lastHour = intMax;
const hoursAtOnce = 16;
/** Blocks that are read at once: an actor may have made millions of calls in an hour. */
const blocksAtOnce = 256;
const minuteMs = 60_000;
/** Rows that Cassandra itself reads at once for a sum. */
const summedAtOnce = 5_000;
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

  async list(actorId: string, page: AccessPage, signal?: AbortSignal): Promise<AccessEvent[]> {
    const { ledgerId, since, limit, descending } = page;
    if (limit <= 0) return [];
    const keptFrom = keptFromHourIn(await this.#facts.get(keptFromHourFact), this.#now());
    const from = Math.max(accessHour(Math.max(0, since)), keptFrom ?? 0);
    const ledger = ledgerId === null ? WHOLE : keyText(ledgerId);
    const found: AccessEvent[] = [];
    let skip = page.offset;
    for await (const hour of this.#hours(actorId, from, descending)) {
      signal?.throwIfAborted();
      const key = [keyText(actorId), hour, ledger];
      let span = spanOf(hour * accessHourMs, accessHourMs);
      // Only the first hour may hold events before `since`.
      if (skip > 0 && span.fromMs >= since) {
        const rest = await this.#skip(key, span, skip, descending, signal);
        skip = rest.skip;
        if (rest.span === null) continue;
        span = rest.span;
      }
      for await (const texts of this.#texts(key, span, descending, signal))
        for (const event of eventsInOrder(actorId, texts, descending)) {
          if (accessTime(event.id) < since) continue;
          if (skip > 0) skip -= 1;
          else if (found.push(event) === limit) return found;
        }
    }
    return found;
  }

  /** Skips events by the counts of their blocks. Returns what is left of the span, or null, and of `skip`. */
  async #skip(
    key: readonly unknown[],
    span: Span,
    skip: number,
    descending: boolean,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly span: Span | null; readonly skip: number }> {
    const params = [...key, ...idsOf(span), blocksAtOnce + 1];
    const counts = (await this.#session.read({ cql: COUNTS, params })).map((row) => numberOf(row, 'count') ?? 0);
    if (counts.length <= blocksAtOnce) {
      const count = counts.reduce((sum, one) => sum + one, 0);
      const isSound = counts.every((one) => one >= 1 && one <= blockEventsMax);
      return isSound && skip >= count ? { span: null, skip: skip - count } : { span, skip };
    }
    let { fromMs, endMs } = span;
    let left = skip;
    while (fromMs < endMs) {
      signal?.throwIfAborted();
      const minute = spanOf(descending ? endMs - minuteMs : fromMs, minuteMs);
      const count = await this.#sum([...key, ...idsOf(minute)]);
      if (count === null || left < count) return { span: { fromMs, endMs }, skip: left };
      left -= count;
      if (descending) endMs = minute.fromMs;
      else fromMs = minute.endMs;
    }
    return { span: null, skip: left };
  }

  /** The number of events, by the counts of the blocks. null if one of these cannot be. */
  async #sum(params: readonly unknown[]): Promise<number | null> {
    const [row] = await this.#session.read({ cql: SUM, params }, { pageRows: summedAtOnce });
    const isSound =
      numberOf(row, 'counted') === numberOf(row, 'blocks') &&
      (numberOf(row, 'least') ?? 1) >= 1 &&
      (numberOf(row, 'most') ?? 0) <= blockEventsMax;
    return isSound ? numberOf(row, 'events') : null;
  }

  /** The texts of the span's blocks, in parts: no block of a part overlaps one of another part. */
  async *#texts(
    key: readonly unknown[],
    { fromMs, endMs }: Span,
    descending: boolean,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<string[]> {
    const read = (span: Span, limit: number) =>
      this.#session.read({ cql: descending ? DOWN : UP, params: [...key, ...idsOf(span), limit] });
    while (fromMs < endMs) {
      signal?.throwIfAborted();
      const rows = await read({ fromMs, endMs }, blocksAtOnce + 1);
      const lastMs = timeOf(rows.at(-1));
      if (rows.length <= blocksAtOnce || lastMs === null) {
        yield textsOf(rows.length <= blocksAtOnce ? rows : await read({ fromMs, endMs }, intMax));
        return;
      }
      // More blocks of the last one's span may follow.
      const last = spanOf(lastMs - (lastMs % blockSpanMs), blockSpanMs);
      const before = rows.filter((row) => !isWithin(timeOf(row), last));
      yield textsOf(before.length > 0 ? before : await read(last, intMax));
      if (descending) endMs = before.length > 0 ? last.endMs : last.fromMs;
      else fromMs = before.length > 0 ? last.fromMs : last.endMs;
    }
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

/** ms since 1970; `endMs` is not in it. */
interface Span {
  readonly fromMs: number;
  readonly endMs: number;
}

function spanOf(fromMs: number, lengthMs: number): Span {
  return { fromMs, endMs: fromMs + lengthMs };
}

function isWithin(ms: number | null, { fromMs, endMs }: Span): boolean {
  return ms !== null && ms >= fromMs && ms < endMs;
}

/** No id of the span is lower than the first of these, and all are lower than the second. */
function idsOf({ fromMs, endMs }: Span): string[] {
  return [fromMs, endMs].map((ms) => uuidV7(Math.min(ms, UUID_V7_TIME_MAX), new Uint8Array(UUID_V7_RANDOM_BYTES)));
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
