import { bytesOf, type CqlSession } from '../../src/store/cassandra/session/session.ts';
import type { HashPlace } from '../../src/store/tile-store.ts';

/** Reads and plants values of the trees by CQL of its own: a full tile for level 0, else a single hash. */
export function treeValues(session: CqlSession) {
  const keyOf = ({ owner, level, position }: HashPlace) => {
    const block = BigInt(Math.floor(position / 16_384));
    return level === 0
      ? { table: 'tile', columns: ['owner', 'block', 'n'], key: [owner, block, BigInt(position / 256)] }
      : { table: 'tile_hash', columns: ['owner', 'level', 'block', 'n'], key: [owner, level, block, BigInt(position)] };
  };
  return {
    async storedHash(place: HashPlace): Promise<Buffer> {
      const { table, columns, key } = keyOf(place);
      const where = columns.map((column) => `${column} = ?`).join(' AND ');
      const [row] = await session.read({ cql: `SELECT value FROM ${table} WHERE ${where}`, params: key });
      return bytesOf(row, 'value') ?? Buffer.alloc(0);
    },
    async plantHash(place: HashPlace, value: Buffer): Promise<void> {
      const { table, columns, key } = keyOf(place);
      const cql = `INSERT INTO ${table} (${columns.join(', ')}, value) VALUES (${columns.map(() => '?').join(', ')}, ?)`;
      await session.write([{ cql, params: [...key, value] }]);
    },
    async storedHead(origin: string): Promise<Buffer> {
      const [row] = await session.read({ cql: 'SELECT head FROM signed_head WHERE origin = ?', params: [origin] });
      return bytesOf(row, 'head') ?? Buffer.alloc(0);
    },
    async plantHead(origin: string, value: Buffer): Promise<void> {
      await session.write([{ cql: 'INSERT INTO signed_head (origin, head) VALUES (?, ?)', params: [origin, value] }]);
    },
  };
}
