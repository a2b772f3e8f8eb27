import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { actorKid } from '../../../../src/domain/keys/signature.ts';
import { callsOf } from '../../../../src/rpc/pipeline/call-rates.ts';
import { FairPlaces } from '../../../../src/runtime/limits/fair-places.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import type { ActorRecord } from '../../../../src/service/actors/actor-record.ts';
import { actorService } from '../../../../src/service/actors/actors.ts';
import { resolverService } from '../../../../src/service/actors/resolver.ts';
import { preferKey } from '../../../../src/service/actors/signing-keys.ts';
import type { Authority } from '../../../../src/service/authority/authority.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { encodedOnce } from '../../../../src/service/calls/shared-answer.ts';
import { eventLoopBudget } from '../../../../src/service/limits/event-loop-budget.ts';
import type { LogIdentity } from '../../../../src/service/log-identity/log-identity.ts';
import { Walk } from '../../../../src/service/walking/walk.ts';
import { bareActor } from '../../../support/actor-record.ts';
import { uuid } from '../../../support/commands.ts';
import { identitiesIn } from '../../../support/identities.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { startMs } from '../../../support/world.ts';

const at = '2027-01-01T00:00:00.000Z';

/** An actor with so many keys. All but the last 200 are revoked, for the longest reason. */
function actorWith(keys: number, actorId = uuid(1)): ActorRecord {
  const made = Array.from({ length: keys }, (_, n) => {
    const isRevoked = n < keys - 200;
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

async function storing(...actors: readonly ActorRecord[]) {
  let reads = 0;
  class CountingStore extends MemoryRecordStore {
    override async get(kind: string, id: string) {
      reads += 1;
      return super.get(kind, id);
    }
  }
  const store = new CountingStore();
  const identities = identitiesIn(store, () => startMs);
  for (const actor of actors) {
    await identities.create(actor);
    await identities.load(actor.actorId);
  }
  const places = new FairPlaces({ perCaller: 4, total: 16 });
  const resolver = resolverService(identities, {} as Authority, {} as LogIdentity, false);
  const service = actorService(identities, async () => {});
  const called = async <T>(handle: (call: Call) => Promise<T>) => {
    const walk = new Walk(
      { places, memory: new MemoryBudget(64 * 1024 * 1024) },
      'caller',
      new AbortController().signal,
    );
    const headers = new Map<string, string>();
    const call = { walk, setHeader: (name: string, value: string) => headers.set(name, value) } as unknown as Call;
    const answer = await handle(call);
    const heldPlaces = places.held;
    walk.end();
    return { answer, heldPlaces, calls: callsOf(walk.cost), etag: headers.get('etag') };
  };
  return {
    identities,
    places,
    /** The same record as another node changes it. */
    elsewhere: (change: (held: ActorRecord) => ActorRecord, actorId = uuid(1)) =>
      identitiesIn(store, () => startMs).update(actorId, change, null),
    readsWhile: async (work: () => Promise<unknown>) => {
      const before = reads;
      await work();
      return reads - before;
    },
    resolve: (actorId = uuid(1)) =>
      called((call) =>
        resolver.resolveActor({ svcUri: `svc:actor:${actorId}` } as Parameters<typeof resolver.resolveActor>[0], call),
      ),
    keys: () =>
      called((call) =>
        service.listActorKeys(
          { actorId: uuid(1), includeRevoked: true } as Parameters<typeof service.listActorKeys>[0],
          call,
        ),
      ),
    actor: () =>
      called((call) => service.getActor({ actorId: uuid(1) } as Parameters<typeof service.getActor>[0], call)),
    lookup: () =>
      called((call) =>
        service.lookupActor({ svcId: `svc:actor:${uuid(1)}` } as Parameters<typeof service.lookupActor>[0], call),
      ),
  };
}

describe('an actor that is read again', () => {
  test('is not parsed while it has not changed, and is parsed as soon as it has', async () => {
    const { identities, elsewhere } = await storing(actorWith(3));
    const first = await identities.load(uuid(1));
    expect(await identities.load(uuid(1))).toBe(first);
    await elsewhere((actor) => preferKey(actor, actorKid(uuid(1), 1)));
    const changed = await identities.load(uuid(1));
    expect(changed?.keys.map((key) => key.preferred)).toEqual([true, false, false]);
    expect(await identities.load(uuid(1))).toBe(changed);
  });

  test('is what this node itself has stored', async () => {
    const { identities } = await storing(actorWith(3));
    const stored = await identities.update(uuid(1), (actor) => preferKey(actor, actorKid(uuid(1), 2)), null);
    expect(await identities.load(uuid(1))).toEqual(stored);
  });
});

describe('the cache of actors', () => {
  test('keeps a dozen of the largest at most, and those that were read last', async () => {
    const actors = Array.from({ length: 20 }, (_, n) => actorWith(1_000, uuid(n + 1)));
    const { identities } = await storing(...actors);
    const cached = actors.map(({ actorId }) => identities.isCached(actorId));
    expect(cached).toEqual([...Array(8).fill(false), ...Array(12).fill(true)]);
  });

  test('keeps 10,000 with one key each', async () => {
    const actors = Array.from({ length: 10_000 }, (_, n) => actorWith(1, uuid(n + 1)));
    const { identities } = await storing(...actors);
    expect(actors.every(({ actorId }) => identities.isCached(actorId))).toBe(true);
  });

  test('counts the answers that are kept with an actor, and what is encoded of them', async () => {
    const actors = Array.from({ length: 12 }, (_, n) => actorWith(1_000, uuid(n + 1)));
    const { identities, resolve } = await storing(...actors);
    const cached = () => actors.filter(({ actorId }) => identities.isCached(actorId)).length;
    expect(cached()).toBe(12);
    const { answer } = await resolve(uuid(12));
    expect(cached()).toBe(11);
    encodedOnce(answer, 'json', () => '');
    expect(cached()).toBe(10);
  });
});

describe('a large actor', () => {
  test('is read once for all that ask before the read begins, and again for those that ask later', async () => {
    const { identities, elsewhere, readsWhile } = await storing(actorWith(1_000));
    eventLoopBudget.use(0, 1024 * 1024);
    const early = Array.from({ length: 100 }, () => identities.load(uuid(1)));
    await elsewhere((actor) => preferKey(actor, actorKid(uuid(1), 999)));
    const reads = await readsWhile(async () => {
      for (const actor of await Promise.all(early)) expect(actor?.keys[998]?.preferred).toBe(true);
    });
    expect(reads).toBe(1);
    await elsewhere((actor) => preferKey(actor, actorKid(uuid(1), 1_000)));
    expect((await identities.load(uuid(1)))?.keys[999]?.preferred).toBe(true);
  });

  test('is read once in a turn of the event loop, however many unknown keys of it are asked for', async () => {
    const { identities, readsWhile } = await storing(actorWith(1_000));
    await setImmediate();
    const reads = await readsWhile(() =>
      Promise.all(Array.from({ length: 200 }, (_, n) => identities.key(uuid(1), actorKid(uuid(1), 1_001 + n)))),
    );
    expect(reads).toBeLessThanOrEqual(2);
  });

  test('costs every caller that reads it a place, and counts with its keys for the rate', async () => {
    const { resolve, keys, actor, lookup, places } = await storing(actorWith(1_000));
    for (const read of [resolve, keys, actor, lookup]) {
      const { heldPlaces, calls } = await read();
      expect([heldPlaces, calls]).toEqual([1, 2]);
      expect(places.held).toBe(0);
    }
  });

  test('has one document for all that ask, with one ETag, until it changes', async () => {
    const { resolve, elsewhere } = await storing(actorWith(1_000));
    const first = await resolve();
    const second = await resolve();
    expect(second.answer).toBe(first.answer);
    expect(second.etag).toBe(first.etag);
    await elsewhere((actor) => preferKey(actor, actorKid(uuid(1), 999)));
    const changed = await resolve();
    expect(changed.answer.preferredSigning).toBe(actorKid(uuid(1), 999));
    expect(changed.etag).not.toBe(first.etag);
  });

  test('has one list of keys for all that ask, which is encoded once', async () => {
    const { keys } = await storing(actorWith(1_000));
    let encoded = 0;
    for (let n = 0; n < 3; n++) {
      const { answer } = await keys();
      expect(answer.keys).toHaveLength(1_000);
      encodedOnce(answer, 'json', () => ++encoded);
    }
    expect(encoded).toBe(1);
  });
});

test('a small actor is read without a place, and for one call', async () => {
  const { resolve, keys, actor, lookup } = await storing(actorWith(10));
  for (const read of [resolve, keys, actor, lookup]) {
    const { heldPlaces, calls } = await read();
    expect([heldPlaces, calls]).toEqual([0, 0]);
  }
});
