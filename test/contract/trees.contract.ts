import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { onUnreadable, UnreadableRecord } from '../../src/store/unreadable-record.ts';
import type { TreeFactory, TreeStores } from './trees.ts';

export const newOrigin = () => `ledger.example/v1/ledgers/${randomUUID()}`;

/** Hashes that differ by salt and position. */
export function hashesFrom(salt: string, from: number, count: number): Buffer[] {
  return Array.from({ length: count }, (_, at) =>
    createHash('sha256')
      .update(`${salt} ${from + at}`)
      .digest(),
  );
}

/** Kinds and ids of the unreadable values that the running test meets. */
export function unreadableValues(): string[] {
  const found: string[] = [];
  onTestFinished(onUnreadable(({ kind, id }) => void found.push(`${kind} ${id}`)));
  return found;
}

/** Everything that TileStore and SignedHeads promise, against one kind of store. */
export function treesContract(name: string, factory: TreeFactory): void {
  describe(name, () => {
    let stores: TreeStores;
    beforeAll(async () => {
      stores = await factory.open();
    });
    afterAll(() => factory.close());

    describe('TileStore', () => {
      test('a tile without hashes is empty', async () => {
        expect(await stores.tiles.tile(newOrigin(), 0, 0)).toEqual([]);
        expect(await stores.tiles.tile(newOrigin(), 63, 2 ** 44)).toEqual([]);
      });

      test.each([0, 1, 2, 63])('a full tile of level %i is read as it was put, also after a restart', async (level) => {
        const owner = newOrigin();
        const indices = [0, 1, 63, 64, 65, 2 ** 31];
        for (const index of indices)
          await stores.tiles.putHashes(owner, level, index * 256, hashesFrom('a', index, 256));
        stores = await factory.reopen();
        for (const index of indices)
          expect(await stores.tiles.tile(owner, level, index)).toEqual(hashesFrom('a', index, 256));
        expect(await stores.tiles.tile(owner, level, 2)).toEqual([]);
        expect(await stores.tiles.tile(owner, level === 0 ? 1 : 0, 0)).toEqual([]);
        expect(await stores.tiles.tile(newOrigin(), level, 0)).toEqual([]);
      });

      test.each([0, 1])(
        'parts of a tile of level %i are put in any order, and hashes behind a gap wait',
        async (level) => {
          const owner = newOrigin();
          const hashes = hashesFrom('a', 256, 256);
          const put = (from: number, to: number) =>
            stores.tiles.putHashes(owner, level, 256 + from, hashes.slice(from, to));
          const read = () => stores.tiles.tile(owner, level, 1);
          const unreadable = unreadableValues();
          await put(3, 5);
          expect(await read()).toEqual([]);
          await put(0, 1);
          expect(await read()).toEqual(hashes.slice(0, 1));
          await put(2, 3);
          expect(await read()).toEqual(hashes.slice(0, 1));
          stores = await factory.reopen();
          await put(1, 2);
          expect(await read()).toEqual(hashes.slice(0, 5));
          await put(4, 255);
          expect(await read()).toEqual(hashes.slice(0, 255));
          await put(255, 256);
          expect(await read()).toEqual(hashes);
          await put(0, 256);
          expect(await read()).toEqual(hashes);
          expect(unreadable).toEqual([]);
        },
      );

      test('a put replaces what was put before', async () => {
        const owner = newOrigin();
        for (const salt of ['a', 'b']) {
          await stores.tiles.putHashes(owner, 0, 0, hashesFrom(salt, 0, 256));
          await stores.tiles.putHashes(owner, 0, 256, hashesFrom(salt, 256, 7));
          await stores.tiles.putHashes(owner, 1, 0, hashesFrom(salt, 1_000, 20));
        }
        await stores.tiles.putHashes(owner, 1, 5, hashesFrom('c', 0, 2));
        expect(await stores.tiles.tile(owner, 0, 0)).toEqual(hashesFrom('b', 0, 256));
        expect(await stores.tiles.tile(owner, 0, 1)).toEqual(hashesFrom('b', 256, 7));
        const level1 = hashesFrom('b', 1_000, 20).toSpliced(5, 2, ...hashesFrom('c', 0, 2));
        expect(await stores.tiles.tile(owner, 1, 0)).toEqual(level1);
      });

      test('concurrent puts of parts of one tile lose nothing', async () => {
        const owner = newOrigin();
        const hashes = hashesFrom('a', 0, 256);
        const parts = Array.from({ length: 64 }, (_, part) => part * 4);
        await Promise.all(parts.map((from) => stores.tiles.putHashes(owner, 1, from, hashes.slice(from, from + 4))));
        expect(await stores.tiles.tile(owner, 1, 0)).toEqual(hashes);
      });

      test('later changes of arguments and results change nothing in the store', async () => {
        const owner = newOrigin();
        const hashes = hashesFrom('a', 0, 3);
        const put = stores.tiles.putHashes(owner, 1, 0, hashes);
        for (const hash of hashes) hash.fill(0);
        await put;
        for (const hash of await stores.tiles.tile(owner, 1, 0)) hash.fill(0);
        expect(await stores.tiles.tile(owner, 1, 0)).toEqual(hashesFrom('a', 0, 3));
      });

      test('what is no part of a tile is refused and writes nothing', async () => {
        const owner = newOrigin();
        const one = hashesFrom('a', 0, 1);
        for (const [of, level, from, hashes] of [
          [owner, 0, 0, []],
          [owner, 0, 255, hashesFrom('a', 0, 2)],
          [owner, 0, 0, hashesFrom('a', 0, 257)],
          [owner, 0, 0, [randomBytes(31)]],
          [owner, 0, 0, [...one, randomBytes(33)]],
          [owner, 64, 0, one],
          [owner, -1, 0, one],
          [owner, 0.5, 0, one],
          [owner, 0, -1, one],
          [owner, 0, 0.5, one],
          ['', 0, 0, one],
          ['a\0b', 0, 0, one],
          ['x'.repeat(1_025), 0, 0, one],
        ] as const)
          await expect(stores.tiles.putHashes(of, level, from, hashes), `${level} ${from}`).rejects.toThrow(RangeError);
        expect(await stores.tiles.tile(owner, 0, 0)).toEqual([]);
      });

      describe.each([0, 1])('on level %i', (level) => {
        const count = level === 0 ? 256 : 3;
        const planted = { level, position: 256 };
        const another = (owner: string) => factory.storedHash({ owner, level, position: 512 });
        const ownOf = (owner: string) => factory.storedHash({ owner, ...planted });
        const foreign: [string, (owner: string, other: string) => Promise<Buffer> | Buffer][] = [
          ['of another position', another],
          ['of another owner', (_, other) => ownOf(other)],
          ['of another level', (owner) => factory.storedHash({ owner, level: 2, position: 256 })],
          ['of random bytes', () => randomBytes(level === 0 ? 16 + 8_192 : 48)],
          ['that is empty', () => Buffer.alloc(0)],
          ['that is cut', async (owner) => (await ownOf(owner)).subarray(0, 40)],
          ['with a changed bit', async (owner) => flipped(await ownOf(owner))],
        ];
        test.each(foreign)(
          'a value %s is not used, is counted, and is replaced by the next put',
          async (_, foreignValue) => {
            const [owner, other] = [newOrigin(), newOrigin()];
            const put = (of: string) => stores.tiles.putHashes(of, level, 256, hashesFrom('a', 0, count));
            await put(owner);
            await put(other);
            await stores.tiles.putHashes(owner, level, 512, hashesFrom('a', 512, count));
            await stores.tiles.putHashes(owner, 2, 256, hashesFrom('a', 2, 1));
            stores = await factory.plantHash({ owner, ...planted }, await foreignValue(owner, other));
            const unreadable = unreadableValues();
            expect(await stores.tiles.tile(owner, level, 1)).toEqual([]);
            expect(unreadable).toEqual([`tile ${owner} level ${level} position 256`]);
            expect(await stores.tiles.tile(owner, level, 2)).toEqual(hashesFrom('a', 512, count));
            expect(await stores.tiles.tile(other, level, 1)).toEqual(hashesFrom('a', 0, count));
            await put(owner);
            expect(await stores.tiles.tile(owner, level, 1)).toEqual(hashesFrom('a', 0, count));
          },
        );
      });
    });

    describe('SignedHeads', () => {
      const root = (size: number) => hashesFrom('root', size, 1)[0] ?? Buffer.alloc(0);
      const head = (size: number) => ({ size, root: root(size) });

      test('a log that was never signed has no head', async () => {
        expect(await stores.signedHeads.get(newOrigin())).toBeNull();
      });

      test('a head is kept over a restart, and a smaller size or a repetition changes nothing', async () => {
        const [origin, other] = [newOrigin(), newOrigin()];
        const raise = (size: number) => stores.signedHeads.raise(origin, size, root(size));
        await raise(1);
        expect(await stores.signedHeads.get(origin)).toEqual(head(1));
        await raise(300);
        await raise(7);
        await raise(300);
        stores = await factory.reopen();
        expect(await stores.signedHeads.get(origin)).toEqual(head(300));
        await raise(299);
        await raise(1);
        expect(await stores.signedHeads.get(origin)).toEqual(head(300));
        await raise(2 ** 40);
        expect(await stores.signedHeads.get(origin)).toEqual(head(2 ** 40));
        expect(await stores.signedHeads.get(other)).toBeNull();
      });

      test('of concurrent raises the largest is kept, and each sees itself or a larger one', async () => {
        const origin = newOrigin();
        const sizes = Array.from({ length: 40 }, (_, at) => ((at * 17) % 40) + 1);
        await Promise.all(
          sizes.map(async (size) => {
            await stores.signedHeads.raise(origin, size, root(size));
            const found = await stores.signedHeads.get(origin);
            expect(found?.size).toBeGreaterThanOrEqual(size);
            expect(found).toEqual(head(found?.size ?? 0));
          }),
        );
        expect(await stores.signedHeads.get(origin)).toEqual(head(40));
      });

      test('later changes of arguments and results change nothing in the store', async () => {
        const origin = newOrigin();
        const given = root(5);
        const raised = stores.signedHeads.raise(origin, 5, given);
        given.fill(0);
        await raised;
        (await stores.signedHeads.get(origin))?.root.fill(0);
        expect(await stores.signedHeads.get(origin)).toEqual(head(5));
      });

      test('what is no head is refused and writes nothing', async () => {
        const origin = newOrigin();
        for (const size of [0, -1, 1.5, 2 ** 53, Number.NaN])
          await expect(stores.signedHeads.raise(origin, size, root(1))).rejects.toThrow(RangeError);
        for (const bytes of [0, 31, 33])
          await expect(stores.signedHeads.raise(origin, 1, Buffer.alloc(bytes))).rejects.toThrow(RangeError);
        await expect(stores.signedHeads.raise('', 1, root(1))).rejects.toThrow(RangeError);
        expect(await stores.signedHeads.get(origin)).toBeNull();
      });

      const damaged: [string, (origin: string, other: string) => Promise<Buffer> | Buffer][] = [
        ['of another log', (_, other) => factory.storedHead(other)],
        ['of random bytes', () => randomBytes(56)],
        ['that is empty', () => Buffer.alloc(0)],
        ['that is cut', async (origin) => (await factory.storedHead(origin)).subarray(0, 40)],
        ['with a changed bit', async (origin) => flipped(await factory.storedHead(origin))],
      ];
      test.each(damaged)('a head %s is an error and counted, not a log without one', async (_, foreignValue) => {
        const [origin, other] = [newOrigin(), newOrigin()];
        await stores.signedHeads.raise(origin, 9, root(9));
        await stores.signedHeads.raise(other, 4, root(4));
        stores = await factory.plantHead(origin, await foreignValue(origin, other));
        const unreadable = unreadableValues();
        await expect(stores.signedHeads.get(origin)).rejects.toThrow(UnreadableRecord);
        expect(unreadable).toEqual([`signed_head ${origin}`]);
        expect(await stores.signedHeads.get(other)).toEqual(head(4));
      });
    });
  });
}

function flipped(value: Buffer): Buffer {
  const changed = Buffer.from(value);
  changed[20] = (changed[20] ?? 0) ^ 4;
  return changed;
}
