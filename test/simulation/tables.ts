import { tableStatements } from '../../src/store/cassandra/schema/schema.ts';
import type { Decision, Row, Statement } from '../../src/store/cassandra/session/session.ts';
import { bindCql, type Test, type Value } from './cql.ts';

interface Stored {
  readonly value: Value;
  readonly timestamp: bigint;
}

interface Line {
  /** Values of the clustering columns. */
  readonly place: readonly Value[];
  readonly columns: Map<string, Stored>;
}

interface Partition {
  readonly key: ReadonlyMap<string, Value>;
  readonly statics: Map<string, Stored>;
  /** By their places. */
  readonly lines: Line[];
}

interface Table {
  readonly partitionKey: readonly string[];
  readonly clustering: readonly string[];
  readonly statics: ReadonlySet<string>;
  readonly partitions: Map<string, Partition>;
  /** Filled as columns are asked for. */
  readonly readers: Map<string, ColumnReader>;
}

/** A column's value in a line, or in a partition that has none. */
type ColumnReader = (partition: Partition, line: Line | null) => Value;

/** Timestamps that the server gives are later than any seq. */
const serverTimestampsFrom = 1n << 50n;

/**
 * What becomes of a conditional write whose condition held and whose sender gets no answer, where one replica alone has
 * it. `dropped`: the next ballot does not meet that replica. `completed`: the next ballot carries it through; until
 * then plain reads miss it. `rows_completed`: the same, but others have its static columns already, by the repair of
 * who read them.
 */
export type HalfDone = 'dropped' | 'completed' | 'rows_completed';

/** What the tables held at one time, by their names. */
export type TablesCopy = ReadonlyMap<string, readonly (readonly [name: string, partition: Partition])[]>;

/**
 * Cassandra's tables as one copy that everything happens to in an order: what Paxos and quorums make of the replicas.
 * Columns keep the write with the newest timestamp. What is half done waits for the next ballot on its partition, of a
 * conditional write or a serial read.
 */
export class SimulatedTables {
  readonly #tables: ReadonlyMap<string, Table> = new Map(
    tableStatements('sim').map((statement) => tableOf(statement.replaceAll(/\s+/g, ' '))),
  );
  readonly #olderWins: boolean;
  /** Statements that this stand-in does not understand: a run with any proves nothing. */
  readonly unknown = new Set<string>();
  #clock = serverTimestampsFrom;
  readonly #halfDone = new Map<Partition, { readonly statements: readonly Statement[]; readonly writtenAt: bigint }>();

  /** `olderWins`: timestamps are not looked at, which is a bug to be found. */
  constructor(olderWins = false) {
    this.#olderWins = olderWins;
  }

  select({ cql, params }: Statement, { serial = false } = {}): Row[] {
    const statement = this.#bound(cql, params);
    if (statement.kind !== 'select') throw new TypeError(`No query: ${cql}`);
    const table = this.#table(statement.table);
    const { where, limit, columns } = statement;
    const places = where.filter(({ column }) => !table.partitionKey.includes(column));
    const readers = columns.map((column) => readerOf(table, column));
    const rows: Row[] = [];
    for (const partition of partitionsOf(table, where)) {
      if (serial) this.#settle(partition);
      const add = (line: Line | null) => {
        const row: Record<string, unknown> = {};
        for (let at = 0; at < columns.length; at++) row[columns[at] ?? ''] = readers[at]?.(partition, line);
        rows.push(row);
      };
      // A partition that has static columns alone is one row, unless it is asked for places.
      if (partition.lines.length === 0 && partition.statics.size > 0 && places.length === 0) add(null);
      const lines = linesAt(partition.lines, table.clustering, places);
      for (const line of statement.descending ? lines.toReversed() : lines) {
        if (rows.length >= limit) break;
        add(line);
      }
    }
    return rows.slice(0, limit);
  }

  /** Plain writes. */
  write(statements: readonly Statement[]): void {
    this.#writeAt(this.#clock++, statements);
  }

  #writeAt(now: bigint, statements: readonly Statement[]): void {
    for (const statement of statements) this.#upsert(statement, now);
  }

  /** A conditional write. `ignoring`: it is done whatever the condition says, which is a bug to be found. */
  decide(statements: readonly Statement[], ignoring = false, halfDone: HalfDone | null = null): Decision {
    let decided: Partition | null = null;
    for (const { cql, params } of statements) {
      const statement = this.#bound(cql, params);
      if (statement.kind !== 'upsert' || statement.condition.length === 0 || ignoring) continue;
      const table = this.#table(statement.table);
      const partition = this.#partition(table, statement.values);
      this.#settle(partition);
      decided = partition;
      const row: Record<string, unknown> = {};
      let applied = true;
      for (const test of statement.condition) {
        const stored = readerOf(table, test.column)(partition, partition.lines[0] ?? null);
        row[test.column] = stored;
        applied &&= holds(stored, test);
      }
      if (!applied) return { applied, row };
    }
    if (decided === null || halfDone === null) this.write(statements);
    else this.#leave(decided, statements, halfDone);
    return { applied: true, row: {} };
  }

  #leave(partition: Partition, statements: readonly Statement[], how: HalfDone): void {
    if (how === 'dropped') return;
    const writtenAt = this.#clock++;
    const seen = how === 'rows_completed' ? 1 : 0;
    this.#writeAt(writtenAt, statements.slice(0, seen));
    this.#halfDone.set(partition, { statements: statements.slice(seen), writtenAt });
  }

  #settle(partition: Partition): void {
    const left = this.#halfDone.get(partition);
    if (left === undefined) return;
    this.#halfDone.delete(partition);
    this.#writeAt(left.writtenAt, left.statements);
  }

  /** What a backup of the tables holds. What was half done is completed by then. */
  copy(): TablesCopy {
    for (const partition of [...this.#halfDone.keys()]) this.#settle(partition);
    return new Map(
      Array.from(this.#tables, ([name, { partitions }]) => [
        name,
        Array.from(partitions, ([key, partition]) => [key, copyOf(partition)] as const),
      ]),
    );
  }

  /** Puts a copy in the place of a table: of all its partitions, or of those in which `column` has this value. */
  restore(copy: TablesCopy, name: string, column?: string, value?: Value): void {
    const { partitions } = this.#table(name);
    const isIn = ({ key }: Partition) => column === undefined || key.get(column) === value;
    for (const [key, partition] of partitions) {
      if (!isIn(partition)) continue;
      partitions.delete(key);
      // A later copy would complete what is half done there in the partition of the same key.
      this.#halfDone.delete(partition);
    }
    for (const [key, partition] of copy.get(name) ?? []) if (isIn(partition)) partitions.set(key, partition);
  }

  #upsert({ cql, params }: Statement, now: bigint): void {
    const statement = this.#bound(cql, params);
    if (statement.kind !== 'upsert') throw new TypeError(`No write: ${cql}`);
    const table = this.#table(statement.table);
    const { values, timestamp = null } = statement;
    const partition = this.#partition(table, values);
    const writtenAt = timestamp ?? now;
    const isPlaced = table.clustering.every((column) => values.has(column));
    const place = table.clustering.map((column) => values.get(column) ?? null);
    const line = isPlaced ? lineAt(partition, place) : null;
    for (const [column, value] of values) {
      if (table.partitionKey.includes(column) || table.clustering.includes(column)) continue;
      const columns = table.statics.has(column) ? partition.statics : line?.columns;
      if (columns === undefined) throw new TypeError(`No row for ${column}: ${cql}`);
      const stored = columns.get(column);
      const isOlderKept = this.#olderWins && statement.table !== 'signed_head';
      if (isOlderKept || stored === undefined || writtenAt >= stored.timestamp)
        columns.set(column, { value, timestamp: writtenAt });
    }
  }

  #bound(cql: string, params: readonly unknown[]): ReturnType<typeof bindCql> {
    try {
      return bindCql(cql, params);
    } catch (error) {
      this.unknown.add(cql);
      throw error;
    }
  }

  #table(name: string): Table {
    const table = this.#tables.get(name);
    if (table === undefined) throw new TypeError(`There is no table ${name}`);
    return table;
  }

  #partition(table: Table, values: ReadonlyMap<string, Value>): Partition {
    const key = table.partitionKey.map((column) => values.get(column) ?? null);
    const name = key.join('\u0001');
    let partition = table.partitions.get(name);
    if (partition === undefined) {
      const named = new Map(table.partitionKey.map((column, at) => [column, key[at] ?? null]));
      partition = { key: named, statics: new Map(), lines: [] };
      table.partitions.set(name, partition);
    }
    return partition;
  }
}

function copyOf({ key, statics, lines }: Partition): Partition {
  const copied = lines.map(({ place, columns }) => ({ place, columns: new Map(columns) }));
  return { key, statics: new Map(statics), lines: copied };
}

function tableOf(statement: string): readonly [string, Table] {
  const found = /sim\.(\w+) \((.+?)(?:, PRIMARY KEY \((?:\((.+?)\)(?:, (.+?))?|(\w+))\))?\)(?: WITH .+)?$/.exec(
    statement,
  );
  const [, name = '', columns = '', parts, clustering, single] = found ?? [];
  const inline = /(\w+) \w+ PRIMARY KEY/.exec(columns)?.[1];
  const statics = [...columns.matchAll(/(\w+) \w+ static/g)].map(([, column = '']) => column);
  const partitionKey = parts?.split(', ') ?? [single ?? inline ?? ''];
  const table = {
    partitionKey,
    clustering: clustering?.split(', ') ?? [],
    statics: new Set(statics),
    partitions: new Map(),
    readers: new Map(),
  };
  return [name, table];
}

/** The partitions that the tests name: every combination of the values given for the key. */
function partitionsOf(table: Table, tests: readonly Test[]): Partition[] {
  let names = [''];
  for (const [at, column] of table.partitionKey.entries()) {
    const test = tests.find((one) => one.column === column);
    const named = (name: string, value: Value) => (at === 0 ? `${value}` : `${name}\u0001${value}`);
    if (test?.operator === 'IN')
      names = names.flatMap((name) => (test.value as Value[]).map((value) => named(name, value)));
    else names = names.map((name) => named(name, test?.value as Value));
  }
  return names.flatMap((name) => table.partitions.get(name) ?? []);
}

function readerOf(table: Table, column: string): ColumnReader {
  let reader = table.readers.get(column);
  if (reader === undefined) {
    const place = table.clustering.indexOf(column);
    if (table.statics.has(column)) reader = ({ statics }) => statics.get(column)?.value ?? null;
    else if (place >= 0) reader = (_partition, line) => line?.place[place] ?? null;
    else if (column.startsWith('writetime(')) reader = timeReaderOf(table, column.slice('writetime('.length, -1));
    else if (table.partitionKey.includes(column)) reader = ({ key }) => key.get(column) ?? null;
    else reader = (_partition, line) => line?.columns.get(column)?.value ?? null;
    table.readers.set(column, reader);
  }
  return reader;
}

function timeReaderOf({ statics }: Table, column: string): ColumnReader {
  if (statics.has(column)) return (partition) => partition.statics.get(column)?.timestamp ?? null;
  return (_partition, line) => line?.columns.get(column)?.timestamp ?? null;
}

function lineAt({ lines }: Partition, place: readonly Value[]): Line {
  let [from, to] = [0, lines.length];
  for (let column = 0; column < place.length; column++) {
    const value = place[column] ?? null;
    from = firstWith(lines, from, to, column, value, 'or later');
    to = firstWith(lines, from, to, column, value, 'later');
  }
  const stored = lines[from];
  if (stored !== undefined && from < to) return stored;
  const line: Line = { place, columns: new Map() };
  lines.splice(from, 0, line);
  return line;
}

/**
 * The lines that stand where all of the tests ask for, in their order. As in Cassandra, columns are tested from the
 * first one on: each with one value or some, but the last, which may have bounds.
 */
function linesAt(lines: readonly Line[], clustering: readonly string[], tests: readonly Test[]): readonly Line[] {
  if (tests.length === 0) return lines;
  let ranges: (readonly [from: number, to: number])[] = [[0, lines.length]];
  let tested = 0;
  for (let column = 0; tested < tests.length; column++) {
    const those = tests.filter((test) => test.column === clustering[column]);
    if (those.length === 0) throw new TypeError(`No place: ${tests.map((test) => test.column)}`);
    for (const test of those) ranges = ranges.flatMap((range) => narrowed(lines, range, column, test));
    tested += those.length;
  }
  const [range] = ranges;
  if (range === undefined) return [];
  return ranges.length === 1 ? lines.slice(...range) : ranges.flatMap((one) => lines.slice(...one));
}

/** What a test of a column leaves of a range in which all columns before it have one value. */
function narrowed(
  lines: readonly Line[],
  [from, to]: readonly [number, number],
  column: number,
  { operator, value }: Test,
): (readonly [number, number])[] {
  const first = (one: Value, from: number, which: 'or later' | 'later') =>
    firstWith(lines, from, to, column, one, which);
  switch (operator) {
    case '>=':
      return [[first(value as Value, from, 'or later'), to]];
    case '<=':
      return [[from, first(value as Value, from, 'later')]];
    case '=': {
      const begin = first(value as Value, from, 'or later');
      return [[begin, first(value as Value, begin, 'later')]];
    }
    case 'IN': {
      const values = [...(value as Value[])].sort(compare);
      return values.flatMap((one, at) => {
        if (at > 0 && isSame(one, values[at - 1])) return [];
        return narrowed(lines, [from, to], column, { column: '', operator: '=', value: one });
      });
    }
  }
}

/**
 * The first line between two whose column has the value `or later`, or one later than it; `to` where there is none. By
 * bisection.
 */
function firstWith(
  lines: readonly Line[],
  from: number,
  to: number,
  column: number,
  value: Value,
  which: 'or later' | 'later',
): number {
  const least = which === 'later' ? 1 : 0;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (compare(lines[middle]?.place[column] ?? null, value) >= least) to = middle;
    else from = middle + 1;
  }
  return from;
}

function compare(left: Value, right: Value): number {
  if (isSame(left, right)) return 0;
  return left !== null && right !== null && left < right ? -1 : 1;
}

function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a === 'bigint' || typeof b === 'bigint')
    return (
      a !== null && b !== null && a !== undefined && b !== undefined && BigInt(a as bigint) === BigInt(b as bigint)
    );
  return (a ?? null) === (b ?? null);
}

function holds(stored: Value, { operator, value }: Test): boolean {
  if (operator === 'IN') return (value as unknown[]).some((one) => isSame(stored, one));
  if (operator === '=') return isSame(stored, value);
  if (stored === null) return false;
  return operator === '>=' ? stored >= (value as Value & {}) : stored <= (value as Value & {});
}
