import { UUID_V7_RANDOM_BYTES, UUID_V7_TIME_MAX, uuidV7 } from '../../../domain/values/uuid.ts';
import { type AccessEvent, type AccessLog, type AccessPage, accessTime } from '../../access-log.ts';
import { checkAccessOrder } from '../../write-checks.ts';
import { accessHour, accessHourMs, keyText } from '../keys.ts';
import { keptFromHourFact, keptFromHourIn } from '../schema/fact-values.ts';
import { ClusterFacts } from '../session/facts.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { type CqlSession, eachAtOnce, intMax, numberOf, type Statement, textOf } from '../session/session.ts';
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
const COUNT =
  'SELECT sum(count) AS events, min(count) AS least, max(count) AS most, count(count) AS counted, count(*) AS blocks ' +
  OF_SPAN;

/** Value of ledger_id in the rows of an actor's whole history. */
const WHOLE = '';
const lastHour = intMax;
const hoursAtOnce = 16;
/** A span of time with more blocks is read in parts: an actor may make millions of calls in an hour. */
const blocksAtOnce = 256;
/** Lengths of spans, ms. Each is a multiple of the next one. */
const spansMs = [accessHourMs, 60_000, 10_000, blockSpanMs];
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
    const { ledgerId, since, limit, offset, descending } = page;
    if (limit <= 0) return [];
    const keptFrom = keptFromHourIn(await this.#facts.get(keptFromHourFact), this.#now());
    const from = Math.max(accessHour(Math.max(0, since)), keptFrom ?? 0);
    const ledger = ledgerId === null ? WHOLE : keyText(ledgerId);
    const reading = { actorId, ledger, since, limit, descending, signal, skip: offset, found: [] };
    for await (const hour of this.#hours(actorId, from, descending)) {
      await this.#readSpan(reading, hour * accessHourMs, spansMs);
      if (reading.found.length === limit) break;
    }
    return reading.found;
  }

  /** Reads the span of the first of these lengths that begins at `fromMs`. */
  async #readSpan(reading: Reading, fromMs: number, [lengthMs = 0, ...shorterMs]: readonly number[]): Promise<void> {
    const { actorId, ledger, since, limit, descending, signal, found } = reading;
    signal?.throwIfAborted();
    const endMs = fromMs + lengthMs;
    if (endMs <= since) return;
    const span = [keyText(actorId), accessHour(fromMs), ledger, firstIdAt(fromMs), firstIdAt(endMs)];
    if (reading.skip > 0 && fromMs >= since) {
      const count = await this.#count(span);
      if (count !== null && reading.skip >= count) {
        reading.skip -= count;
        return;
      }
    }
    const [partMs] = shorterMs;
    const most = partMs === undefined ? intMax : blocksAtOnce + 1;
    const rows = await this.#session.read({ cql: `SELECT events ${OF_SPAN} LIMIT ?`, params: [...span, most] });
    if (partMs !== undefined && rows.length > blocksAtOnce) {
      const parts = Array.from({ length: lengthMs / partMs }, (_, at) => fromMs + at * partMs);
      for (const partFromMs of descending ? parts.reverse() : parts) {
        await this.#readSpan(reading, partFromMs, shorterMs);
        if (found.length === limit) return;
      }
      return;
    }
    const texts = rows.flatMap((row) => textOf(row, 'events') ?? []);
    for (const event of eventsInOrder(actorId, texts, descending)) {
      if (accessTime(event.id) < since) continue;
      if (reading.skip > 0) reading.skip -= 1;
      else if (found.push(event) === limit) return;
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

  /** The number of events, by the counts of the blocks. null if one of these cannot be. */
  async #count(span: readonly unknown[]): Promise<number | null> {
    const [row] = await this.#session.read({ cql: COUNT, params: span });
    const isSound =
      numberOf(row, 'counted') === numberOf(row, 'blocks') &&
      (numberOf(row, 'least') ?? 1) >= 1 &&
      (numberOf(row, 'most') ?? 0) <= blockEventsMax;
    return isSound ? numberOf(row, 'events') : null;
  }
}

/** A page that is being read. */
interface Reading extends Omit<AccessPage, 'ledgerId' | 'offset'> {
  readonly actorId: string;
  readonly ledger: string;
  readonly signal: AbortSignal | undefined;
  readonly found: AccessEvent[];
  /** How many events come before the page. */
  skip: number;
}

/** No id of that time, or a later one, is lower. */
function firstIdAt(ms: number): string {
  return uuidV7(Math.min(ms, UUID_V7_TIME_MAX), new Uint8Array(UUID_V7_RANDOM_BYTES));
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
