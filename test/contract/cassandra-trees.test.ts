import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { LedgerError } from '../../src/domain/errors.ts';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import type { CqlSession } from '../../src/store/cassandra/session/session.ts';
import { CassandraTreeInspection } from '../../src/store/cassandra/trees/tree-inspection.ts';
import type { StoredHashes } from '../../src/store/store-inspection.ts';
import type { CassandraAddress } from '../support/backends/backend.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { cassandraFactory, execute, suiteKeyspace } from './cassandra-factory.ts';
import { treeValues } from './cassandra-tree-values.ts';
import { treeInspectionContract } from './tree-inspection.contract.ts';
import { hashesFrom, newOrigin, treesContract, unreadableValues } from './trees.contract.ts';
import type { InspectedTreeFactory } from './trees.ts';

function treeFactory(address: CassandraAddress): InspectedTreeFactory {
  const stores = cassandraFactory(address);
  let opened: CassandraStores | null = null;
  const now = () => {
    if (opened === null) throw new Error('The stores are not open');
    return opened;
  };
  const values = () => treeValues(now().session);
  return {
    async open() {
      opened = await stores.open({ nowMs: 0 });
      return opened;
    },
    async reopen() {
      opened = await stores.reopen();
      return opened;
    },
    storedHash: (place) => values().storedHash(place),
    plantHash: (place, value) => values().plantHash(place, value).then(now),
    storedHead: (origin) => values().storedHead(origin),
    plantHead: (origin, value) => values().plantHead(origin, value).then(now),
    inspect: (work) => work(new CassandraTreeInspection(now().session, Date.now)).then(now),
    close: () => stores.close(),
  };
}

await describeOnCassandra('on Cassandra', (address) => {
  treesContract('trees', treeFactory(address));
  treeInspectionContract('trees, inspected', treeFactory(address));
});

await describeOnCassandra('Trees that several nodes write to Cassandra', (address) => {
  const { settings, open } = suiteKeyspace(address);
  let stores: CassandraStores;
  let other: CassandraStores;
  beforeAll(async () => {
    [stores, other] = await Promise.all([open(), open()]);
  });
  const values = () => treeValues(stores.session);
  const count = async (table: string, key: readonly unknown[]) => {
    const where = table === 'tile' ? 'owner = ? AND block = ?' : 'owner = ? AND level = ? AND block = ?';
    const cql = `SELECT n, writetime(value) AS written FROM ${table} WHERE ${where}`;
    return (await stores.session.read({ cql, params: key })).map(({ n }) => Number(n));
  };

  test('a put of one node is found by another at once', async () => {
    const owner = newOrigin();
    for (let from = 0; from < 64; from += 4) {
      await stores.tiles.putHashes(owner, 1, from, hashesFrom('a', from, 4));
      expect(await other.tiles.tile(owner, 1, 0)).toHaveLength(from + 4);
    }
    await stores.signedHeads.raise(owner, 5, randomBytes(32));
    expect((await other.signedHeads.get(owner))?.size).toBe(5);
  });

  test('full tiles of level 0 are rows of tile, all else rows of tile_hash, in blocks', async () => {
    const owner = newOrigin();
    for (const index of [0, 63, 64]) await stores.tiles.putHashes(owner, 0, index * 256, hashesFrom('a', 0, 256));
    await stores.tiles.putHashes(owner, 0, 65 * 256, hashesFrom('a', 0, 2));
    await stores.tiles.putHashes(owner, 1, 63 * 256, hashesFrom('a', 0, 256));
    await stores.tiles.putHashes(owner, 1, 64 * 256, hashesFrom('a', 0, 1));
    expect(await count('tile', [owner, 0n])).toEqual([0, 63]);
    expect(await count('tile', [owner, 1n])).toEqual([64]);
    expect(await count('tile_hash', [owner, 0, 1n])).toEqual([16_640, 16_641]);
    expect(await count('tile_hash', [owner, 1, 0n])).toEqual(Array.from({ length: 256 }, (_, at) => 16_128 + at));
    expect(await count('tile_hash', [owner, 1, 1n])).toEqual([16_384]);
  });

  test('a sound value is refused in the other table: a tile as a hash, a hash as a tile', async () => {
    const owner = newOrigin();
    const hashes = hashesFrom('a', 0, 256);
    await stores.tiles.putHashes(owner, 0, 0, hashes.slice(0, 1));
    const { session } = stores;
    const [single] = await session.read({
      cql: 'SELECT value FROM tile_hash WHERE owner = ? AND level = 0 AND block = 0 AND n = 0',
      params: [owner],
    });
    await stores.tiles.putHashes(owner, 0, 0, hashes);
    const tile = await values().storedHash({ owner, level: 0, position: 0 });
    const asHash = 'INSERT INTO tile_hash (owner, level, block, n, value) VALUES (?, 0, 0, 0, ?)';
    await session.write([{ cql: asHash, params: [owner, tile] }]);
    if (!Buffer.isBuffer(single?.value)) throw new Error('The row has no value');
    await values().plantHash({ owner, level: 0, position: 0 }, single.value);
    const unreadable = unreadableValues();
    expect(await stores.tiles.tile(owner, 0, 0)).toEqual([]);
    expect(unreadable).toHaveLength(2);
    expect((await unfitOf(owner)).map(({ table }) => table).sort()).toEqual(['tile', 'tile_hash']);
  });

  test('a damaged full tile is replaced by the single hashes that are stored', async () => {
    const owner = newOrigin();
    const hashes = hashesFrom('a', 0, 256);
    await stores.tiles.putHashes(owner, 0, 0, hashes.slice(0, 200));
    await stores.tiles.putHashes(owner, 0, 0, hashes);
    await values().plantHash({ owner, level: 0, position: 0 }, randomBytes(8_208));
    expect(await stores.tiles.tile(owner, 0, 0)).toEqual(hashes.slice(0, 200));
  });

  test('a tile ends before a damaged or lost hash in its middle', async () => {
    const owner = newOrigin();
    const hashes = hashesFrom('a', 0, 256);
    await stores.tiles.putHashes(owner, 1, 0, hashes);
    await values().plantHash(
      { owner, level: 1, position: 100 },
      await values().storedHash({ owner, level: 1, position: 101 }),
    );
    expect(await stores.tiles.tile(owner, 1, 0)).toEqual(hashes.slice(0, 100));
    const where = 'WHERE owner = ? AND level = 1 AND block = 0 AND n = 50';
    await execute(settings, `DELETE FROM tile_hash ${where}`, [owner]);
    expect(await stores.tiles.tile(owner, 1, 0)).toEqual(hashes.slice(0, 50));
    await execute(settings, `UPDATE tile_hash SET value = null ${where.replace('50', '20')}`, [owner]);
    expect(await stores.tiles.tile(owner, 1, 0)).toEqual(hashes.slice(0, 20));
    await stores.tiles.putHashes(owner, 1, 0, hashes);
    expect(await stores.tiles.tile(owner, 1, 0)).toEqual(hashes);
  });

  async function foundOf(owner: string): Promise<StoredHashes[]> {
    const found: StoredHashes[] = [];
    for await (const one of new CassandraTreeInspection(stores.session, Date.now).hashes())
      if (one.found.owner === owner) found.push(one.found);
    return found;
  }
  const unfitOf = async (owner: string) => (await foundOf(owner)).filter(({ hashes }) => hashes === null);

  test('a value where no reader looks is found as one that does not fit its place', async () => {
    const owner = newOrigin();
    await stores.tiles.putHashes(owner, 0, 0, hashesFrom('a', 0, 256));
    await stores.tiles.putHashes(owner, 1, 0, hashesFrom('a', 0, 1));
    const run = (cql: string, value: Buffer) => stores.session.write([{ cql, params: [owner, value] }]);
    const tile = await values().storedHash({ owner, level: 0, position: 0 });
    const hash = await values().storedHash({ owner, level: 1, position: 0 });
    await run('INSERT INTO tile (owner, block, n, value) VALUES (?, 1, 0, ?)', tile);
    await run('INSERT INTO tile (owner, block, n, value) VALUES (?, 0, -1, ?)', tile);
    await run('INSERT INTO tile_hash (owner, level, block, n, value) VALUES (?, 1, 9, 0, ?)', hash);
    await run('INSERT INTO tile_hash (owner, level, block, n, value) VALUES (?, 300, 0, 0, ?)', hash);
    await run('INSERT INTO tile_hash (owner, level, block, n, value) VALUES (?, -1, 0, 0, ?)', hash);
    const unfit = await unfitOf(owner);
    expect(unfit).toHaveLength(5);
    expect(unfit.map(({ key }) => key)).toContain(`owner=${owner}, level=1, block=9, n=0`);
    for (const one of unfit) await one.remove();
    expect(await unfitOf(owner)).toEqual([]);
    expect(await foundOf(owner)).toHaveLength(2);
    expect(await stores.tiles.tile(owner, 0, 0)).toHaveLength(256);
  });

  test('a removal leaves a value that a node has put since the damage was found', async () => {
    const owner = newOrigin();
    for (const [level, hashes] of [
      [0, hashesFrom('a', 0, 256)],
      [1, hashesFrom('a', 0, 1)],
    ] as const) {
      await values().plantHash({ owner, level, position: 0 }, randomBytes(100));
      const [found] = await unfitOf(owner);
      await other.tiles.putHashes(owner, level, 0, hashes);
      await found?.remove();
      expect(await stores.tiles.tile(owner, level, 0)).toEqual(hashes);
    }
  });

  test('a value that is put after a removal stands, also if the clock of its writer is behind', async () => {
    const owner = newOrigin();
    const place = { owner, level: 1, position: 0 };
    const hashes = hashesFrom('a', 0, 1);
    await stores.tiles.putHashes(owner, 1, 0, hashes);
    const value = await values().storedHash(place);
    await values().plantHash(place, randomBytes(100));
    const where = 'WHERE owner = ? AND level = 1 AND block = 0 AND n = 0';
    const written = `SELECT writetime(value) AS written FROM tile_hash ${where}`;
    const [row] = await stores.session.read({ cql: written, params: [owner] });
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const one of await unfitOf(owner)) await one.remove();
    // By its writer's clock, the put comes after the damaged value and 45 ms or more before the removal.
    const cql = `UPDATE tile_hash USING TIMESTAMP ? SET value = ? ${where}`;
    await stores.session.write([{ cql, params: [BigInt(String(row?.written)) + 5_000n, value, owner] }]);
    expect(await stores.tiles.tile(owner, 1, 0)).toEqual(hashes);
  });

  describe('whose answers are lost', () => {
    const unavailable = () => new LedgerError('unavailable', 'injected');
    /** Stores whose next plain write fails: before it is sent, or after it was carried out. */
    async function failing(how: 'lost' | 'applied') {
      let left = 1;
      return open((session: CqlSession) => ({
        ...session,
        write: async (statements) => {
          if (left-- <= 0) return session.write(statements);
          if (how === 'applied') await session.write(statements);
          throw unavailable();
        },
      }));
    }

    test.each(['lost', 'applied'] as const)('a raise that is %s is unavailable, and may be repeated', async (how) => {
      const origin = newOrigin();
      const root = randomBytes(32);
      await stores.signedHeads.raise(origin, 2, root);
      const node = await failing(how);
      await expect(node.signedHeads.raise(origin, 9, root)).rejects.toMatchObject({ code: 'unavailable' });
      expect(await other.signedHeads.get(origin)).toEqual({ size: how === 'applied' ? 9 : 2, root });
      await node.signedHeads.raise(origin, 9, root);
      expect(await other.signedHeads.get(origin)).toEqual({ size: 9, root });
    });

    test('a raise that arrives after a larger one of another node changes nothing', async () => {
      const origin = newOrigin();
      const root = randomBytes(32);
      let arrive: (() => Promise<void>) | null = null;
      const node = await open((session) => ({
        ...session,
        write: async (statements) => {
          arrive = () => session.write(statements);
          throw unavailable();
        },
      }));
      await expect(node.signedHeads.raise(origin, 5, root)).rejects.toMatchObject({ code: 'unavailable' });
      await other.signedHeads.raise(origin, 6, root);
      await (arrive as (() => Promise<void>) | null)?.();
      expect(await stores.signedHeads.get(origin)).toEqual({ size: 6, root });
    });

    test.each(['lost', 'applied'] as const)('a put that is %s is unavailable, and may be repeated', async (how) => {
      const owner = newOrigin();
      const node = await failing(how);
      const hashes = hashesFrom('a', 0, 5);
      await expect(node.tiles.putHashes(owner, 1, 0, hashes)).rejects.toMatchObject({ code: 'unavailable' });
      expect(await other.tiles.tile(owner, 1, 0)).toEqual(how === 'applied' ? hashes : []);
      await node.tiles.putHashes(owner, 1, 0, hashes);
      expect(await other.tiles.tile(owner, 1, 0)).toEqual(hashes);
    });
  });

  test('a signed head whose column was removed is an error, not a log that was never signed', async () => {
    const origin = newOrigin();
    await stores.signedHeads.raise(origin, 5, randomBytes(32));
    await execute(settings, 'UPDATE signed_head SET head = null WHERE origin = ?', [origin]);
    await expect(stores.signedHeads.get(origin)).rejects.toMatchObject({ name: 'UnreadableRecord' });
  });
});
