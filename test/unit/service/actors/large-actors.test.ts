import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { actorKid } from '../../../../src/domain/keys/signature.ts';
import { callsOf } from '../../../../src/rpc/pipeline/call-rates.ts';
import { eventLoopBudget } from '../../../../src/runtime/limits/event-loop-budget.ts';
import { FairPlaces } from '../../../../src/runtime/limits/fair-places.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import type { ActorRecord } from '../../../../src/service/actors/actor-record.ts';
import { actorService } from '../../../../src/service/actors/actors.ts';
import { resolverService } from '../../../../src/service/actors/resolver.ts';
import { preferKey } from '../../../../src/service/actors/signing-keys.ts';
import type { Authority } from '../../../../src/service/authority/authority.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { encodedOnce } from '../../../../src/service/calls/shared-answer.ts';
import { developerService } from '../../../../src/service/developers/developers.ts';
import type { KeyCache } from '../../../../src/service/developers/entity-credentials.ts';
import type { LogIdentity } from '../../../../src/service/log-identity/log-identity.ts';
import { changeMutex } from '../../../../src/service/records/change-mutex.ts';
import { unboundedWalk, Walk } from '../../../../src/service/walking/walk.ts';
import { bareActor } from '../../../support/actor-record.ts';
import { settled } from '../../../support/clock.ts';
import { uuid } from '../../../support/commands.ts';
import { identitiesIn } from '../../../support/identities.ts';
import { emptyRecordData, MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { newKeyPair } from '../../../support/parties.ts';
import { startMs } from '../../../support/world.ts';

const at = '2027-01-01T00:00:00.000Z';

/** An actor with so many keys. All but the last of them are revoked, for the longest reason. */
function actorWith(keys: number, actorId = uuid(1), active = 200): ActorRecord {
  const made = Array.from({ length: keys }, (_, n) => {
    const isRevoked = n < keys - active;
    return {
      kid: actorKid(actorId, n + 1),
      publicKey: Buffer.alloc(32, n).toString('base64'),
      preferred: n === keys - 1,
      validFrom: at,
      createdAt: at,
      revokedAt: isRevoked ? at : null,
      revokedReason: isRevoked ? '\u{1f511}'.repeat(256) : null,
    };
  });
  return { ...bareActor(actorId), keys: made };
}

/** A node over a store with these actors. It has read them, unless it `isNew`. */
async function storing(actors: readonly ActorRecord[], isNew = false) {
  let nowMs = startMs;
  let reads = 0;
  let hanging: Promise<void> | null = null;
  class SlowStore extends MemoryRecordStore {
    override async get(kind: string, id: string) {
      reads += 1;
      const found = await super.get(kind, id);
      await hanging;
      return found;
    }
  }
  const data = emptyRecordData();
  const shared = new MemoryRecordStore(data);
  const identities = identitiesIn(new SlowStore(data), () => nowMs);
  for (const actor of actors) {
    await identities.create(actor);
    if (!isNew) await identities.load(actor.actorId);
  }
  reads = 0;
  const places = new FairPlaces({ perCaller: 4, total: 16 });
  const resolver = resolverService(identities, {} as Authority, {} as LogIdentity, false);
  const service = actorService(identities, async () => {});
  const developers = developerService(shared, identities, {} as KeyCache, changeMutex());
  const called = async <T>(handle: (call: Call) => Promise<T>, callerId = uuid(1)) => {
    const memory = new MemoryBudget(64 * 1024 * 1024);
    const { signal } = new AbortController();
    const walk = new Walk({ places, memory }, 'caller', signal);
    const headers = new Map<string, string>();
    const setHeader = (name: string, value: string) => headers.set(name, value);
    const caller = { actorId: callerId };
    const answer = await handle({ walk, setHeader, caller, now: nowMs, signal, newId: randomUUID } as unknown as Call);
    const heldPlaces = places.held;
    const heldBytes = memory.heldBytes();
    walk.end();
    return { answer, heldPlaces, heldBytes, calls: callsOf(walk.cost), etag: headers.get('etag') };
  };
  /** The parameters of a method of the service, of which the test gives what is read. */
  const requested = (fields: object) => ({ actorId: uuid(1), ...fields }) as never;
  return {
    identities,
    places,
    /** The same record as another node changes it. */
    elsewhere: (change: (held: ActorRecord) => ActorRecord, actorId = uuid(1)) =>
      identitiesIn(shared, () => nowMs).update(actorId, change, null),
    wait: (ms: number) => {
      nowMs += ms;
    },
    /** So many reads have been asked of the store. */
    reads: async () => {
      await settled();
      return reads;
    },
    readsNow: () => reads,
    /** From now on reads do not end until what is returned is called. */
    hang: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      hanging = promise;
      return () => {
        if (hanging === promise) hanging = null;
        resolve();
      };
    },
    resolve: (actorId = uuid(1)) =>
      called((call) =>
        resolver.resolveActor({ svcUri: `svc:actor:${actorId}` } as Parameters<typeof resolver.resolveActor>[0], call),
      ),
    keys: (includeRevoked = true) => called((call) => service.listActorKeys(requested({ includeRevoked }), call)),
    actor: () => called((call) => service.getActor(requested({}), call)),
    lookup: () => called((call) => service.lookupActor(requested({ svcId: `svc:actor:${uuid(1)}` }), call)),
    developer: () => called((call) => developers.getDeveloper(requested({}), call)),
    enrol: () => called((call) => service.enrollActorKey(requested({ publicKey: newKeyPair().publicKey }), call)),
    prefer: () => called((call) => service.preferActorKey(requested({ kid: 'key-999' }), call)),
    revoke: (callerId = uuid(1)) =>
      called((call) => service.revokeActorKey(requested({ kid: 'key-999' }), call), callerId),
    /** Of a caller who may not. */
    revokeOfOther: () =>
      called((call) => service.revokeActorKey(requested({ kid: 'key-999' }), call).catch(() => {}), uuid(77)),
  };
}

describe('an actor that is read again', () => {
  test('is not parsed while it has not changed, and is parsed as soon as it has', async () => {
    const { identities, elsewhere } = await storing([actorWith(3)]);
    const first = await identities.load(uuid(1));
    expect(await identities.load(uuid(1))).toBe(first);
    await elsewhere((actor) => preferKey(actor, actorKid(uuid(1), 1)));
    const changed = await identities.load(uuid(1));
    expect(changed?.keys.map((key) => key.preferred)).toEqual([true, false, false]);
    expect(await identities.load(uuid(1))).toBe(changed);
  });

  test('is what this node itself has stored', async () => {
    const { identities } = await storing([actorWith(3)]);
    const stored = await identities.update(uuid(1), (actor) => preferKey(actor, actorKid(uuid(1), 2)), null);
    expect(identities.known(uuid(1))).toEqual(stored);
    expect(await identities.load(uuid(1))).toEqual(stored);
  });

  test('stays what this node has stored when a read ends that began before', async () => {
    const { identities, reads, hang } = await storing([actorWith(3)]);
    const release = hang();
    const early = identities.load(uuid(1));
    expect(await reads()).toBe(1);
    hang()();
    const stored = await identities.update(uuid(1), (actor) => preferKey(actor, actorKid(uuid(1), 2)), null);
    release();
    expect((await early)?.keys[1]?.preferred).toBe(false);
    expect(identities.known(uuid(1))).toEqual(stored);
  });
});

describe('the cache of actors', () => {
  const numbered = (count: number, keys: number, first = 1) =>
    Array.from({ length: count }, (_, n) => actorWith(keys, uuid(first + n), keys === 1 ? 1 : 0));

  test('keeps ten of the largest, those that were read last, and none of them in the place of a small one', async () => {
    const small = numbered(10_000, 1);
    const large = numbered(20, 1_000, 10_001);
    const { identities } = await storing([...small, ...large]);
    const cached = (actors: ActorRecord[]) => actors.map(({ actorId }) => identities.known(actorId) !== undefined);
    expect(cached(large)).toEqual([...Array(10).fill(false), ...Array(10).fill(true)]);
    expect(cached(small)).toEqual(Array(10_000).fill(true));
  });

  test('lets go of large actors, who are then unknown to it', async () => {
    const { identities } = await storing(numbered(20, 1_000));
    expect([identities.isCached(uuid(1)), identities.isCached(uuid(20))]).toEqual([false, true]);
  });

  test('counts the answers that are kept with an actor, and what is encoded of them', async () => {
    const actors = numbered(10, 1_000);
    const { identities, resolve } = await storing(actors);
    const cached = () => actors.filter(({ actorId }) => identities.known(actorId) !== undefined).length;
    expect(cached()).toBe(10);
    const { answer } = await resolve(uuid(10));
    expect(cached()).toBe(9);
    encodedOnce(answer, 'json', () => '');
    expect(cached()).toBe(8);
  });

  test('keeps an actor without its answers when they become too heavy together', async () => {
    const { identities, resolve, keys } = await storing([actorWith(1_000, uuid(1), 0)]);
    const first = await resolve();
    for (const { answer } of [first, await keys(false), await keys(true)])
      for (const form of ['json', 'message', 'protobuf'] as const) encodedOnce(answer, form, () => '');
    expect(identities.known(uuid(1))).toBeDefined();
    const again = await resolve();
    expect(again.answer).not.toBe(first.answer);
    expect(again.answer).toEqual(first.answer);
    expect((await resolve()).answer).toBe(again.answer);
  });

  test('has an actor once, whether it has grown or become small', async () => {
    const { identities, elsewhere } = await storing([actorWith(3)]);
    for (const keys of [1_000, 3]) {
      await elsewhere(() => actorWith(keys));
      await identities.load(uuid(1));
      expect(identities.known(uuid(1))?.keys).toHaveLength(keys);
    }
  });
});

describe('a large actor', () => {
  test('is read once for all that sign at once, though it is not in the cache', async () => {
    const others = Array.from({ length: 20 }, (_, n) => actorWith(1_000, uuid(n + 2)));
    const { identities, reads, hang } = await storing([actorWith(1_000), ...others]);
    expect(identities.known(uuid(1))).toBeUndefined();
    const release = hang();
    const asked = Array.from({ length: 20 }, () => identities.recent(uuid(1)));
    expect(await reads()).toBe(1);
    release();
    for (const actor of await Promise.all(asked)) expect(actor?.keys).toHaveLength(1_000);
  });

  test('is read once for all that ask before the read begins, and again for one that asks later', async () => {
    const { identities, elsewhere, reads, hang } = await storing([actorWith(1_000)]);
    const release = hang();
    eventLoopBudget.use(0, 1024 * 1024);
    const early = Array.from({ length: 100 }, () => identities.reload(uuid(1)));
    expect(await reads()).toBe(1);
    await elsewhere((actor) => preferKey(actor, actorKid(uuid(1), 999)));
    const late = identities.reload(uuid(1));
    expect(await reads()).toBe(2);
    release();
    for (const actor of await Promise.all(early)) expect(actor?.keys[998]?.preferred).toBe(false);
    expect((await late)?.keys[998]?.preferred).toBe(true);
  });

  test('is read once in a turn of the event loop, however many unknown keys of it are asked for', async () => {
    const { identities, reads } = await storing([actorWith(1_000)]);
    await setImmediate();
    await Promise.all(Array.from({ length: 200 }, (_, n) => identities.key(uuid(1), actorKid(uuid(1), 1_001 + n))));
    expect(await reads()).toBeLessThanOrEqual(2);
  });

  test('is read at once for those who sign, however many long reads wait', async () => {
    const { identities, wait, readsNow } = await storing([actorWith(1_000)]);
    wait(1_001);
    for (const read of [
      () => identities.recent(uuid(1)),
      () => identities.read(uuid(1)),
      () => identities.load(uuid(1)),
    ]) {
      eventLoopBudget.use(0, 1024 * 1024);
      const before = readsNow();
      const asked = read();
      expect(readsNow()).toBe(before + 1);
      await asked;
    }
  });

  test('costs those who change its keys no place', async () => {
    const { enrol, prefer, revoke } = await storing([actorWith(999, uuid(1), 100)]);
    for (const change of [enrol, prefer, revoke]) expect(await change()).toMatchObject({ heldPlaces: 0, calls: 0 });
  });

  test('of an entity costs its owner no place, and others who name it the price of a read', async () => {
    const entity = { entityId: uuid(1), actorType: 'device', ownerActorId: uuid(2) } as const;
    const { revoke, revokeOfOther } = await storing([{ ...actorWith(999, uuid(1), 100), entity }]);
    expect(await revoke(uuid(2))).toMatchObject({ heldPlaces: 0, calls: 0 });
    expect(await revokeOfOther()).toMatchObject({ heldPlaces: 1, calls: 2 });
  });

  test('that is named beside the caller waits for the event loop budget', async () => {
    const others = Array.from({ length: 20 }, (_, n) => actorWith(1_000, uuid(n + 2)));
    const { identities, readsNow } = await storing([actorWith(1_000), ...others]);
    await setImmediate();
    eventLoopBudget.use(0, 1024 * 1024);
    const other = identities.recentOther(uuid(1));
    expect(readsNow()).toBe(0);
    expect((await other)?.keys).toHaveLength(1_000);
  });

  test('that a node does not know yet is read once by all that ask at once, and then with a place', async () => {
    const { resolve, reads, hang } = await storing([actorWith(1_000)], true);
    const release = hang();
    const all = Array.from({ length: 50 }, () => resolve());
    expect(await reads()).toBe(1);
    release();
    const [first, ...others] = await Promise.all(all);
    expect(first?.calls).toBe(0);
    expect(new Set(others.map(({ calls }) => calls))).toEqual(new Set([2]));
  });

  test('costs every caller that reads it a place, and counts with its keys for the rate', async () => {
    const { resolve, keys, actor, lookup, developer, places } = await storing([actorWith(1_000)]);
    for (const read of [resolve, keys, actor, lookup, developer]) {
      const { heldPlaces, calls } = await read();
      expect([heldPlaces, calls]).toEqual([1, 2]);
      expect(places.held).toBe(0);
    }
  });

  test('has one document for all that ask, with one ETag, until it changes', async () => {
    const { resolve, elsewhere } = await storing([actorWith(1_000)]);
    const first = await resolve();
    const second = await resolve();
    expect(second.answer).toBe(first.answer);
    expect(second.etag).toBe(first.etag);
    await elsewhere((actor) => preferKey(actor, actorKid(uuid(1), 999)));
    const changed = await resolve();
    expect(changed.answer.preferredSigning).toBe(actorKid(uuid(1), 999));
    expect(changed.etag).not.toBe(first.etag);
  });

  test('has one list of keys for all that ask, and another one with the revoked keys, each encoded once', async () => {
    const { keys } = await storing([actorWith(1_000)]);
    let encoded = 0;
    for (const [includeRevoked, count] of [
      [true, 1_000],
      [false, 200],
      [true, 1_000],
      [false, 200],
    ] as const) {
      const { answer } = await keys(includeRevoked);
      expect(answer.keys).toHaveLength(count);
      encodedOnce(answer, 'json', () => ++encoded);
    }
    expect(encoded).toBe(2);
  });

  test('costs memory for an answer only the call that makes it', async () => {
    const { resolve } = await storing([actorWith(1_000)]);
    const first = await resolve();
    const second = await resolve();
    expect(second.heldBytes).toBe(4 * 1024 * 1024);
    expect(first.heldBytes).toBeGreaterThan(second.heldBytes);
  });
});

test('a small actor is read without a place, and for one call', async () => {
  const { resolve, keys, actor, lookup } = await storing([actorWith(10)]);
  for (const read of [resolve, keys, actor, lookup]) {
    const { heldPlaces, calls } = await read();
    expect([heldPlaces, calls]).toEqual([0, 0]);
  }
});

test('an actor that does not exist is read at once for all that have waited for its first read', async () => {
  const { identities, reads, hang } = await storing([]);
  const release = hang();
  const all = Array.from({ length: 50 }, () => identities.load(uuid(1), unboundedWalk()));
  expect(await reads()).toBe(1);
  const releaseOthers = hang();
  release();
  expect(await reads()).toBe(50);
  releaseOthers();
  expect(new Set(await Promise.all(all))).toEqual(new Set([null]));
});
