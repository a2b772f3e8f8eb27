import { parseSignedHead } from '../../signed-heads.ts';
import type { StoredHashes, StoredSignedHead, TreeInspection, Walked } from '../../store-inspection.ts';
import { levelsMax, tileHashes } from '../../tile-store.ts';
import { textOfKey } from '../keys.ts';
import { bigintOf, bytesOf, type CqlSession, numberOf, type Row, textOf } from '../session/session.ts';
import { walkRows, walkTokens } from '../token-walk.ts';
import { wrongTimes } from '../writetimes.ts';
import { fullTileIn, hashBlock, singleHashIn, tileBlock } from './tile-store.ts';

const HEADS =
  'SELECT origin, head, writetime(head), token(origin) AS place FROM signed_head WHERE token(origin) > ? LIMIT ?';
/** Sorts before every position. */
const lowestN = -(2n ** 63n);

interface HashTable {
  readonly name: string;
  readonly partition: readonly string[];
  readonly hashes: number;
  readonly block: (n: number) => bigint;
  readonly parse: (owner: string, level: number, n: number, value: Buffer) => readonly Buffer[] | null;
}

const tables: readonly HashTable[] = [
  {
    name: 'tile',
    partition: ['owner', 'block'],
    hashes: tileHashes,
    block: tileBlock,
    parse: (owner, level, n, value) => fullTileIn({ owner, level, position: n * tileHashes }, value),
  },
  {
    name: 'tile_hash',
    partition: ['owner', 'level', 'block'],
    hashes: 1,
    block: hashBlock,
    parse: (owner, level, n, value) => {
      const hash = singleHashIn({ owner, level, position: n }, value);
      return hash === null ? null : [hash];
    },
  },
];

/** Walks through the tables of the trees in the order of tokens, in pages. */
export class CassandraTreeInspection implements TreeInspection {
  readonly #session: CqlSession;

  readonly #now: () => number;

  /** `now`: milliseconds since 1970. */
  constructor(session: CqlSession, now: () => number) {
    this.#session = session;
    this.#now = now;
  }

  async *hashes(): AsyncIterable<Walked<StoredHashes>> {
    for (const [at, table] of tables.entries()) {
      const key = table.partition.join(', ');
      const cql = `SELECT DISTINCT ${key}, token(${key}) AS place FROM ${table.name} WHERE token(${key}) > ? LIMIT ?`;
      for await (const { row: partition, share } of walkTokens(this.#session, cql))
        for await (const row of rowsOf(this.#session, table, partition)) {
          const found = this.#storedHashes(table, partition, row);
          if (found !== null) yield { found, share: (at + share) / tables.length };
        }
    }
  }

  /** null if the row has no value. */
  #storedHashes(table: HashTable, partition: Row, row: Row): StoredHashes | null {
    const [value, written] = [bytesOf(row, 'value'), bigintOf(row, 'writetime(value)')];
    if (value === null || written === null) return null;
    const owner = textOfKey(textOf(partition, 'owner') ?? '');
    const [level, n] = [numberOf(partition, 'level') ?? 0, numberOf(row, 'n') ?? 0];
    const isReadable = isIn(table, partition, level, n);
    const values = [...table.partition.map((column) => partition[column]), row.n];
    const cql = `DELETE FROM ${table.name} USING TIMESTAMP ? WHERE ${whereKey(table.partition)} AND n = ?`;
    return {
      table: table.name,
      key: [...table.partition, 'n'].map((column, at) => `${column}=${String(values[at])}`).join(', '),
      owner,
      level,
      position: n * table.hashes,
      hashes: isReadable ? table.parse(owner, level, n, value) : null,
      misdated: wrongTimes(row, ['value'], this.#now(), null),
      // The timestamp of the value itself: the deletion hides nothing that was written later.
      remove: () => this.#session.write([{ cql, params: [written, ...values] }]),
    };
  }

  async *signedHeads(): AsyncIterable<StoredSignedHead> {
    for await (const { row } of walkTokens(this.#session, HEADS)) {
      const origin = textOfKey(textOf(row, 'origin') ?? '');
      const value = bytesOf(row, 'head');
      const head = value === null ? null : parseSignedHead(origin, value);
      const misdated = head === null ? null : wrongTimes(row, ['head'], this.#now(), BigInt(head.size));
      yield { origin, head, misdated };
    }
  }
}

function rowsOf(session: CqlSession, { name, partition }: HashTable, key: Row): AsyncIterable<Row> {
  const cql = `SELECT n, value, writetime(value) FROM ${name} WHERE ${whereKey(partition)} AND n > ? LIMIT ?`;
  const values = partition.map((column) => key[column]);
  return walkRows(session, cql, values, ['n'], [lowestN]);
}

function whereKey(partition: readonly string[]): string {
  return partition.map((column) => `${column} = ?`).join(' AND ');
}

/** Whether readers find the row: it is in its block, and the level has such rows. No position is larger than is safe. */
function isIn({ block, hashes }: HashTable, partition: Row, level: number, n: number): boolean {
  return (
    n >= 0 &&
    Number.isSafeInteger(n * hashes) &&
    level >= 0 &&
    level < levelsMax &&
    block(n) === bigintOf(partition, 'block')
  );
}
