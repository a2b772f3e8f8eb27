import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StoredHashes } from '../../src/store/store-inspection.ts';
import type { HashPlace } from '../../src/store/tile-store.ts';
import { hashesFrom, newOrigin } from './trees.contract.ts';
import type { InspectedTreeFactory, TreeStores } from './trees.ts';

/** Everything that TreeInspection promises, against one kind of store. */
export function treeInspectionContract(name: string, factory: InspectedTreeFactory): void {
  describe(name, () => {
    let stores: TreeStores;
    beforeAll(async () => {
      stores = await factory.open();
    });
    afterAll(() => factory.close());

    const nameOf = ({ owner, level, position }: HashPlace) => `${owner} ${level} ${position}`;

    /** Every sound hash that the inspection finds, by place, and every value that does not fit its place. */
    async function inspected() {
      const sound = new Map<string, string>();
      const unfit: StoredHashes[] = [];
      const shares: number[] = [];
      stores = await factory.inspect(async (trees) => {
        for await (const { found, share } of trees.hashes()) {
          shares.push(share);
          const { owner, level, position, hashes } = found;
          if (hashes === null || owner === null) unfit.push(found);
          for (const [at, hash] of hashes?.entries() ?? [])
            if (hash !== null)
              sound.set(nameOf({ owner: owner ?? '', level, position: position + at }), hash.toString('hex'));
        }
      });
      return { sound, unfit, shares };
    }

    test.each([0, 1])(
      'a value of level %i that does not fit its place is found and removed, and no other',
      async (level) => {
        const [owner, other] = [newOrigin(), newOrigin()];
        const place = { owner, level, position: 256 };
        const count = level === 0 ? 256 : 1;
        for (const one of [owner, other]) await stores.tiles.putHashes(one, level, 256, hashesFrom(one, 256, count));
        await stores.tiles.putHashes(owner, level, 512, hashesFrom(owner, 512, count));
        const before = (await inspected()).sound;
        const foreign = [
          await factory.storedHash({ ...place, position: 512 }),
          await factory.storedHash({ ...place, owner: other }),
          randomBytes(8_208),
          randomBytes(5),
        ];
        for (const value of foreign) {
          stores = await factory.plantHash(place, value);
          const found: StoredHashes[] = [];
          stores = await factory.inspect(async (trees) => {
            for await (const { found: one } of trees.hashes()) if (one.hashes === null) found.push(one);
            expect(found).toEqual([expect.objectContaining({ level, position: 256 })]);
            expect([owner, null]).toContain(found[0]?.owner);
            expect(found[0]?.table).toMatch(/^tile/);
            expect(found[0]?.key).not.toBe('');
            await found[0]?.remove();
            await found[0]?.remove();
          });
          const after = await inspected();
          expect(after.unfit).toEqual([]);
          const left = [...before].filter(([where]) => !isIn(where, place, count));
          expect(after.sound).toEqual(new Map(left));
          expect(await stores.tiles.tile(owner, level, 1)).toEqual([]);
          await stores.tiles.putHashes(owner, level, 256, hashesFrom(owner, 256, count));
          expect(await stores.tiles.tile(owner, level, 1)).toEqual(hashesFrom(owner, 256, count));
        }
      },
    );

    test('a sound value is removed as well, since it may be wrong', async () => {
      const owner = newOrigin();
      await stores.tiles.putHashes(owner, 0, 0, hashesFrom('wrong', 0, 256));
      stores = await factory.inspect(async (trees) => {
        for await (const { found } of trees.hashes()) if (found.owner === owner) await found.remove();
      });
      expect(await stores.tiles.tile(owner, 0, 0)).toEqual([]);
      await stores.tiles.putHashes(owner, 0, 0, hashesFrom('right', 0, 256));
      expect(await stores.tiles.tile(owner, 0, 0)).toEqual(hashesFrom('right', 0, 256));
    });

    test('every signed head is found, and one that cannot be read as null', async () => {
      const [sound, damaged] = [newOrigin(), newOrigin()];
      const [root = Buffer.alloc(0)] = hashesFrom('root', 0, 1);
      for (const [at, origin] of [sound, damaged].entries()) await stores.signedHeads.raise(origin, at + 3, root);
      stores = await factory.plantHead(damaged, randomBytes(56));
      const heads = new Map<string | null, unknown>();
      stores = await factory.inspect(async (trees) => {
        for await (const { origin, head } of trees.signedHeads()) heads.set(origin, head);
      });
      expect(heads).toEqual(
        new Map<string, unknown>([
          [sound, { size: 3, root }],
          [damaged, null],
        ]),
      );
    });

    test('every hash of every log is found, also over many pages and behind gaps', async () => {
      const owner = newOrigin();
      const expected = new Map<string, string>();
      const put = async (of: string, level: number, from: number, count: number) => {
        const hashes = hashesFrom(of, from, count);
        for (const [at, hash] of hashes.entries())
          expected.set(nameOf({ owner: of, level, position: from + at }), hash.toString('hex'));
        await stores.tiles.putHashes(of, level, from, hashes);
      };
      const scattered = Array.from({ length: 600 }, (_, at) => put(owner, 2, at * 256, 1));
      const tiles = Array.from({ length: 5 }, (_, at) => put(owner, 1, at * 256, 256));
      const logs = Array.from({ length: 10 }, () => put(newOrigin(), 0, 2 ** 20, 256));
      await Promise.all([...scattered, ...tiles, ...logs, put(newOrigin(), 0, 0, 3), put(newOrigin(), 63, 250, 6)]);
      const { sound, unfit, shares } = await inspected();
      const owners = new Set([...expected.keys()].map(ownerIn));
      expect(new Map([...sound].filter(([where]) => owners.has(ownerIn(where))))).toEqual(expected);
      expect(unfit).toEqual([]);
      expect(shares).toEqual(shares.toSorted((a, b) => a - b));
      for (const share of shares) expect(share).toBeLessThanOrEqual(1);
    });

    function ownerIn(where: string): string | undefined {
      return where.split(' ')[0];
    }

    function isIn(where: string, { owner, level, position }: HashPlace, count: number): boolean {
      const [of, on, at] = where.split(' ');
      return of === owner && Number(on) === level && Number(at) >= position && Number(at) < position + count;
    }
  });
}
