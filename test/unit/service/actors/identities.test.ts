import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ActorRecord } from '../../../../src/service/actors/actor-record.ts';
import { Identities } from '../../../../src/service/actors/identities.ts';
import { enrolKey } from '../../../../src/service/actors/signing-keys.ts';
import { changeMutex } from '../../../../src/service/records/change-mutex.ts';
import { bareActor } from '../../../support/actor-record.ts';
import { settled } from '../../../support/clock.ts';
import { identitiesIn } from '../../../support/identities.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { slowRecords } from '../../../support/slow-records.ts';

const actorId = '0193a000-0000-7000-8000-0000000000aa';
const startMs = 1_800_000_000_000;
const bare = bareActor(actorId);

function enrolled(actor: ActorRecord): ActorRecord {
  const { publicKey } = generateKeyPairSync('ed25519');
  const bytes = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  return enrolKey(actor, bytes.toString('base64'), startMs);
}

/** Identities that know the actor, over a store whose reads wait for `release`, and whose puts may hang. */
async function known(actor: ActorRecord) {
  let nowMs = startMs;
  const releases: (() => void)[] = [];
  let isSlow = false;
  class SlowStore extends MemoryRecordStore {
    override async get(kind: string, id: string) {
      const found = await super.get(kind, id);
      if (isSlow) await new Promise<void>((resolve) => releases.push(resolve));
      return found;
    }
  }
  const store = new SlowStore();
  const slow = slowRecords(store);
  const identities = identitiesIn(slow.records, () => nowMs);
  await identities.create(actor);
  await identities.load(actorId);
  isSlow = true;
  return {
    identities,
    slow,
    /** The same record as another node changes it. */
    elsewhere: async (change: (held: ActorRecord) => ActorRecord) => {
      isSlow = false;
      await identitiesIn(store, () => nowMs).update(actorId, change, null);
      isSlow = true;
    },
    wait: (ms: number) => {
      nowMs += ms;
    },
    reads: async () => {
      await settled();
      return releases.length;
    },
    release: () => {
      for (const release of releases) release();
    },
  };
}

describe('a cached actor', () => {
  test('is read once for all callers that ask while it is read again', async () => {
    const { identities, wait, reads, release } = await known(enrolled(bare));
    wait(1_001);
    const asked = Array.from({ length: 20 }, () => identities.recent(actorId));
    expect(await reads()).toBe(1);
    release();
    for (const actor of await Promise.all(asked)) expect(actor?.keys).toHaveLength(1);
  });

  test('is not taken from a read that began more than a second ago', async () => {
    const { identities, elsewhere, wait, reads, release } = await known(enrolled(bare));
    wait(1_001);
    const early = identities.recent(actorId);
    expect(await reads()).toBe(1);
    await elsewhere(enrolled);
    wait(1_001);
    const late = identities.recent(actorId);
    expect(await reads()).toBe(2);
    release();
    expect((await early)?.keys).toHaveLength(1);
    expect((await late)?.keys).toHaveLength(2);
    wait(500);
    expect((await identities.recent(actorId))?.keys).toHaveLength(2);
  });

  test('is read again after the clock was set back, since its age is unknown', async () => {
    const { identities, elsewhere, wait, reads, release } = await known(enrolled(bare));
    expect(identities.fresh(actorId)).toBeDefined();
    wait(-30_000);
    expect(identities.fresh(actorId)).toBeUndefined();
    const early = identities.recent(actorId);
    expect(await reads()).toBe(1);
    await elsewhere(enrolled);
    wait(-30_000);
    const late = identities.recent(actorId);
    expect(await reads()).toBe(2);
    release();
    expect((await early)?.keys).toHaveLength(1);
    expect((await late)?.keys).toHaveLength(2);
  });

  test('is read for each caller while it has no keys, so that its first key counts at once', async () => {
    const { identities, elsewhere, reads, release } = await known(bare);
    const before = identities.recent(actorId);
    expect(await reads()).toBe(1);
    await elsewhere(enrolled);
    const after = identities.recent(actorId);
    expect(await reads()).toBe(2);
    release();
    expect((await before)?.keys).toHaveLength(0);
    expect((await after)?.keys).toHaveLength(1);
  });
});

describe('a change of an actor', () => {
  test('is remembered, although it waited for another one for more than a second', async () => {
    const { identities, slow, wait, reads, release } = await known(enrolled(bare));
    slow.next('hangs');
    const both = [identities.update(actorId, enrolled, null), identities.update(actorId, enrolled, null)];
    await reads();
    release();
    await settled();
    wait(1_500);
    await slow.land();
    await both[0];
    await settled();
    expect(await reads()).toBe(2);
    release();
    await both[1];
    expect(identities.known(actorId)?.keys).toHaveLength(3);
  });

  test('counts at once, although it was long in the store and a read from before it is under way', async () => {
    const { identities, slow, wait, reads, release } = await known(enrolled(bare));
    slow.next('hangs');
    const changed = identities.update(actorId, enrolled, null);
    await reads();
    release();
    await settled();
    wait(1_001);
    const early = identities.recent(actorId);
    expect(await reads()).toBe(2);
    await slow.land();
    await changed;
    const late = identities.recent(actorId);
    expect(await reads()).toBe(3);
    release();
    expect((await early)?.keys).toHaveLength(1);
    expect((await late)?.keys).toHaveLength(2);
  });

  test('that changes nothing does not make what was read any fresher', async () => {
    const { identities, wait, reads, release } = await known(enrolled(bare));
    const same = identities.update(actorId, (actor) => actor, null);
    expect(await reads()).toBe(1);
    wait(900);
    release();
    await same;
    wait(200);
    expect(identities.known(actorId)).toBeUndefined();
  });
});

test('no signature verifies under a stored key that enrolment would refuse', async () => {
  const yes = async () => true;
  const identities = new Identities(new MemoryRecordStore(), () => startMs, yes, changeMutex());
  const [good] = enrolled(bare).keys;
  if (good === undefined) throw new Error('no key was enrolled');
  const verdict = (kid: string, publicKey: string) =>
    identities.verify({ ...good, kid, publicKey }, Buffer.alloc(32), Buffer.alloc(64, 7));
  expect(await verdict('good', good.publicKey)).toBe(true);
  const identityPoint = Buffer.from([1, ...new Uint8Array(31)]).toString('base64');
  for (const [at, publicKey] of [identityPoint, '', 'x', Buffer.alloc(32, 2).toString('base64')].entries())
    expect([publicKey, await verdict(`odd ${at}`, publicKey)]).toEqual([publicKey, false]);
});
