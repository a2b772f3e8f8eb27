import { describe, expect, test } from 'vitest';
import { isoTime } from '../../../../src/domain/values/time.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';
import { settled } from '../../../support/clock.ts';
import { append, delegate, grant, revoke } from '../../../support/commands.ts';
import { FollowersRig } from '../../../support/followers-rig.ts';
import { storeWith } from '../../../support/world.ts';

const races = 25;

/**
 * Numbers from 0 to below 1, the same for the same seed (mulberry32). With those of SeededRandom the access of some
 * streams ends before they have begun, and they get other errors.
 */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Race {
  readonly rig: FollowersRig;
  readonly random: () => number;
  /** Waits for a random number of turns of the event loop. */
  pause(): Promise<void>;
}

/** A ledger with a master that a delegate may read, over a store that takes a random time. */
async function raceOf(seed: number): Promise<Race> {
  const random = randomOf(seed);
  const pause = async (): Promise<void> => {
    for (let turns = Math.floor(random() * 4); turns > 0; turns -= 1) await settled();
  };
  const slow = (store: LedgerStore): LedgerStore =>
    storeWith(store, {
      read: async (...given) => {
        await pause();
        const found = await store.read(...given);
        await pause();
        return found;
      },
      head: async (id) => {
        await pause();
        return store.head(id);
      },
    });
  return { rig: await FollowersRig.withMaster({ store: slow }), random, pause };
}

/** A stream of the delegate: of the ledger or the master, from the first event or from now, with a reader that pauses. */
function streamOf({ rig, random, pause }: Race) {
  const take = random() < 0.5 ? undefined : pause;
  const isFromNow = random() < 0.5;
  return random() < 0.5
    ? rig.followLedger(delegate, isFromNow ? {} : { afterSeq: -1n }, take)
    : rig.followMaster(delegate, isFromNow ? {} : { afterMasterSeq: -1n }, take);
}

async function appendSome({ rig, random, pause }: Race, most: number): Promise<void> {
  for (let events = Math.floor(random() * most); events > 0; events -= 1) {
    await rig.commit(append());
    await pause();
  }
}

const seeds = Array.from({ length: races }, (_, n) => n + 1);

describe('a follower is told of nothing that was written after the end of its access', () => {
  test.each(seeds)('when its grant is revoked (seed %i)', async (seed) => {
    const race = await raceOf(seed);
    const { rig, random, pause } = race;
    await rig.commit(grant({ access: 'read' }));
    const streams = [streamOf(race), streamOf(race)];
    await appendSome(race, 5);
    // Some streams begin while the grant is being revoked.
    const late = random() < 0.5 ? streamOf(race) : null;
    await pause();
    const revoked = await rig.commit(revoke());
    await appendSome(race, 5);
    await rig.clock.advance(1_000);
    await rig.settle();
    for (const stream of streams) expect(stream.error?.code).toBe('permission_denied');
    if (late !== null) expect(['permission_denied', 'not_found']).toContain(late.error?.code);
    for (const stream of [...streams, ...(late === null ? [] : [late])])
      expect(Math.max(-1, ...stream.toldSeqs)).toBeLessThan(revoked.seq);
  });

  test.each(seeds)('when its grant runs out (seed %i)', async (seed) => {
    const race = await raceOf(seed);
    const { rig, random } = race;
    const expiresAtMs = rig.clock.now() + 500 + Math.floor(random() * 1_000);
    await rig.commit(grant({ access: 'read', expiresAt: isoTime(expiresAtMs) }));
    const streams = [streamOf(race), streamOf(race)];
    while (rig.clock.now() < expiresAtMs + 1_000) {
      await appendSome(race, 3);
      await rig.clock.advance(1 + Math.floor(random() * 150));
    }
    await rig.settle();
    const written = rig.chain.events.findLast(({ createdAt }) => createdAt < isoTime(expiresAtMs));
    for (const stream of streams) {
      expect(stream.error?.code).toBe('access_expired');
      expect(Math.max(-1, ...stream.toldSeqs)).toBeLessThanOrEqual(written?.seq ?? -1);
    }
  });

  test.each(seeds)('when its API key is revoked (seed %i)', async (seed) => {
    const race = await raceOf(seed);
    const { rig, pause } = race;
    await rig.commit(grant({ access: 'read' }));
    const streams = [streamOf(race), streamOf(race)];
    await appendSome(race, 5);
    await pause();
    const last = rig.chain.events.length - 1;
    rig.revokeKey(delegate);
    await appendSome(race, 5);
    await rig.settle();
    for (const stream of streams) {
      expect(stream.error?.code).toBe('invalid_api_key');
      expect(Math.max(-1, ...stream.toldSeqs)).toBeLessThanOrEqual(last);
    }
  });
});
