import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { LedgerActor } from '../../../../src/actors/ledger/ledger-actor.ts';
import { actorService } from '../../../../src/service/actors/actors.ts';
import { KeyEndings } from '../../../../src/service/actors/key-endings.ts';
import { keyRevocation } from '../../../../src/service/actors/key-revocation.ts';
import { checkCallSignature } from '../../../../src/service/actors/signing.ts';
import { enrolKey } from '../../../../src/service/actors/signing-keys.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { changesWaitingByDefault } from '../../../../src/service/records/change-mutex.ts';
import type { RecordStore } from '../../../../src/store/record-store.ts';
import { bareActor } from '../../../support/actor-record.ts';
import { settled } from '../../../support/clock.ts';
import { append, createMaster, ledgerId, openLedger, signature, supplier } from '../../../support/commands.ts';
import { identitiesIn } from '../../../support/identities.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { newKeyPair } from '../../../support/parties.ts';
import { type SlowRecords, slowRecords } from '../../../support/slow-records.ts';
import { codeOf, type Rig, rig, startMs } from '../../../support/world.ts';

/** Two nodes on one store. Writes of `here` can be slow or fail; `there` takes events for the ledger all the time. */
const kid = `svc:actor:${supplier}#key-1`;
const leadMs = 2_000;

let world: Rig;
let slow: SlowRecords;
let here: ReturnType<typeof node>;
let there: ReturnType<typeof node>;

const signed = () =>
  append({ signature: signature(kid), signatureRule: 'if_keyed', deadline: world.clock.now() + 10_000 });

function node(records: RecordStore, lead = leadMs) {
  const { clock, parts } = world;
  const identities = identitiesIn(records, () => clock.now());
  const endings = new KeyEndings(identities, clock);
  const ledger = new LedgerActor(ledgerId, { ...parts, keys: endings });
  const service = actorService(identities, keyRevocation(identities, endings, clock, lead));
  const call = (now = clock.now(), { signal } = new AbortController()) =>
    ({ now, signal, caller: { actorId: supplier, mustSign: false }, newId: randomUUID }) as Partial<Call> as Call;
  return {
    identities,
    ledger,
    keys: endings,
    call,
    append: () => codeOf(ledger.submit(signed())),
    /** `now`: when the call first came, if it is run again. `ending` ends the call. */
    revoke: (reason = 'lost', now = clock.now(), ending = new AbortController(), name = kid) =>
      codeOf(service.revokeActorKey({ actorId: supplier, kid: name, reason } as never, call(now, ending))),
    enrol: () => service.enrollActorKey({ actorId: supplier, publicKey: newKeyPair().publicKey } as never, call()),
    prefer: (name: string) => codeOf(service.preferActorKey({ actorId: supplier, kid: name } as never, call())),
    shown: async () => {
      const { keys } = await service.listActorKeys({ actorId: supplier, includeRevoked: true } as never, call());
      return keys;
    },
  };
}

beforeEach(async () => {
  world = rig();
  const store = new MemoryRecordStore();
  slow = slowRecords(store);
  here = node(slow.records);
  there = node(store);
  await there.identities.create(enrolKey(bareActor(supplier), newKeyPair().publicKey, startMs - 60_000));
  await Promise.all([
    there.ledger.submit(openLedger()),
    there.ledger.submit(createMaster({ signatureRule: 'optional' })),
  ]);
});

/** Lets time pass in which `there` tries to append. Returns after how many milliseconds it succeeded. */
async function appending(ms: number): Promise<number[]> {
  const begunMs = world.clock.now();
  const taken: number[] = [];
  for (let at = 0; at < ms; at += 100) {
    await world.clock.advance(100);
    if ((await there.append()) === 'carried out') taken.push(world.clock.now() - begunMs);
  }
  return taken;
}

/** When the key ended (ISO). Expects that all events under it are dated before. */
async function endOfKey(): Promise<string> {
  const end = (await there.identities.load(supplier))?.keys[0]?.revokedAt ?? '';
  expect(end).not.toBe('');
  const signed = (await world.log()).filter((event) => event.signingKeyId === kid);
  expect(signed.filter((event) => event.createdAt >= end)).toEqual([]);
  return end;
}

const iso = (ms: number) => new Date(ms).toISOString();

describe('a revocation on a cluster', () => {
  test('whose first write hangs dates the end two seconds after that write, and events until then stay valid', async () => {
    slow.next('hangs');
    let answeredMs = 0;
    const answer = here.revoke().finally(() => {
      answeredMs = world.clock.now();
    });
    expect(await appending(3_500)).toContain(3_500);
    await slow.land();
    const landedMs = world.clock.now();
    const taken = await appending(3_000);
    expect(taken.every((ms) => ms <= 1_000)).toBe(true);
    expect(await answer).toBe('carried out');
    expect(answeredMs).toBe(landedMs + leadMs);
    expect(await endOfKey()).toBe(iso(landedMs + leadMs));
  });

  test('whose first write lands late, after an unknown outcome, keeps everybody from the key, which has no end yet', async () => {
    slow.next('untold');
    expect(await here.revoke()).toBe('outcome_unknown');
    expect(await appending(3_000)).toContain(3_000);
    await slow.land();
    await appending(1_000);
    expect(await appending(20_000)).toEqual([]);
    expect(await there.shown()).toMatchObject([{ kid, status: 'ACTIVE' }]);
    expect((await there.shown())[0]).not.toHaveProperty('revokedAt');
    const [againMs, answer] = [world.clock.now(), here.revoke()];
    await world.clock.advance(leadMs);
    expect(await answer).toBe('carried out');
    expect(await endOfKey()).toBe(iso(againMs + leadMs));
  });

  test('whose first write lands after another call has revoked the key changes nothing', async () => {
    slow.next('untold');
    expect(await here.revoke('mislaid')).toBe('outcome_unknown');
    const answer = here.revoke('stolen');
    await world.clock.advance(leadMs);
    expect(await answer).toBe('carried out');
    await slow.land();
    expect(await there.shown()).toMatchObject([{ status: 'REVOKED', revokedReason: 'stolen' }]);
    await endOfKey();
  });

  test('whose second write hangs is answered once the end is stored, while nobody uses the key', async () => {
    slow.next('at once', 'hangs');
    let answered = false;
    const begunMs = world.clock.now();
    const answer = here.revoke().finally(() => {
      answered = true;
    });
    const taken = await appending(8_000);
    expect(taken.every((ms) => ms <= 1_000)).toBe(true);
    expect(answered).toBe(false);
    await slow.land();
    expect(await answer).toBe('carried out');
    expect(await endOfKey()).toBe(iso(begunMs + leadMs));
  });

  test('whose call ends during the first write is finished, however many changes of the actor wait', async () => {
    slow.next('hangs');
    const ending = new AbortController();
    const answer = here.revoke('lost', world.clock.now(), ending);
    await settled();
    const others = Array.from({ length: changesWaitingByDefault }, () => here.prefer('key-1'));
    await settled();
    expect(await here.prefer('key-1')).toBe('overloaded');
    ending.abort();
    await slow.land();
    expect(new Set(await Promise.all(others))).toEqual(new Set(['key_not_active']));
    await settled();
    await world.clock.advance(leadMs);
    expect(await answer).toBe('carried out');
    await endOfKey();
  });

  test('whose second write fails has an unknown outcome, and a retry of the call finishes it', async () => {
    slow.next('at once', 'never');
    const begunMs = world.clock.now();
    expect(await here.revoke('lost', begunMs)).toBe('outcome_unknown');
    await appending(5_000);
    const [againMs, answer] = [world.clock.now(), here.revoke('lost', begunMs)];
    await world.clock.advance(leadMs);
    expect(await answer).toBe('carried out');
    expect(await endOfKey()).toBe(iso(againMs + leadMs));
    const puts = slow.puts;
    expect(await here.revoke('lost', begunMs)).toBe('carried out');
    expect(slow.puts).toBe(puts);
    expect(await here.revoke()).toBe('key_not_active');
  });

  test('whose second write lands after a retry on another node has one end', async () => {
    slow.next('at once', 'untold');
    const begunMs = world.clock.now();
    expect(await here.revoke('lost', begunMs)).toBe('outcome_unknown');
    await appending(5_000);
    const answer = there.revoke('lost', begunMs);
    await settled();
    await slow.land();
    await world.clock.advance(leadMs);
    expect(await answer).toBe('carried out');
    expect(await endOfKey()).toBe(iso(begunMs + 5_000 + leadMs));
  });

  test('writes a begun end again if it was only read, since other nodes may not find it yet', async () => {
    slow.next('at once', 'never');
    await here.revoke();
    const puts = slow.puts;
    slow.next('untold');
    expect(await here.revoke()).toBe('outcome_unknown');
    expect(slow.puts).toBe(puts + 1);
    await slow.land();
    expect((await there.shown())[0]).not.toHaveProperty('revokedAt');
  });

  test('is answered by two nodes that revoke at once, when the one end has come', async () => {
    slow.next('at once', 'hangs');
    const first = here.revoke();
    await world.clock.advance(500);
    const second = there.revoke();
    await world.clock.advance(500);
    await slow.land();
    await world.clock.advance(leadMs);
    expect([await first, await second]).toEqual(['carried out', 'carried out']);
    const end = Date.parse(await endOfKey());
    expect(world.clock.now()).toBeGreaterThanOrEqual(end);
  });
});

describe.each([
  ['on a cluster', leadMs],
  ['on a node that stands alone', 0],
])('a revocation %s, while another change of the actor is written', (_where, lead) => {
  const hasEnd = async () => (await there.identities.load(supplier))?.keys[0]?.revokedAt !== null;

  beforeEach(() => {
    here = node(slow.records, lead);
  });

  test('comes next, though others fill the queue and ever more come', async () => {
    slow.next('hangs');
    const { prefer } = here;
    const preferring = async (): Promise<void> => {
      for (let times = 0; times < 50; times++) {
        await prefer('key-1');
        await settled();
      }
    };
    const others = Array.from({ length: 200 }, preferring);
    await settled();
    const answer = here.revoke();
    await settled();
    await slow.land();
    // Each of the 64 that wait takes a turn of the event loop.
    for (let turns = 0; turns < 10; turns++) await settled();
    const isEnded = await hasEnd();
    await world.clock.advance(leadMs);
    expect([await answer, isEnded]).toEqual(['carried out', true]);
    await Promise.all(others);
    await endOfKey();
  });

  test('is given up if its call ends before it has begun', async () => {
    slow.next('hangs');
    const first = here.prefer('key-1');
    await settled();
    const ending = new AbortController();
    const answer = here.revoke('lost', world.clock.now(), ending);
    await settled();
    ending.abort();
    expect(await answer).toBe('unavailable');
    await slow.land();
    expect(await first).toBe('carried out');
    expect(await hasEnd()).toBe(false);
  });

  test('of a key that has ended, or never was, is answered without waiting', async () => {
    await here.enrol();
    const done = here.revoke('lost', world.clock.now(), undefined, 'key-2');
    await world.clock.advance(leadMs);
    expect(await done).toBe('carried out');
    slow.next('hangs');
    const first = here.prefer('key-1');
    await settled();
    const others = ['key-2', 'key-3'].map((name) => here.revoke('lost', world.clock.now(), undefined, name));
    expect(await Promise.race([Promise.all(others), settled().then(() => 'they wait')])).toEqual([
      'key_not_active',
      'not_found',
    ]);
    await slow.land();
    expect(await first).toBe('carried out');
  });
});

describe('a key whose end has begun', () => {
  beforeEach(async () => {
    await here.enrol();
    slow.next('at once', 'never');
    await here.revoke();
    await world.clock.advance(1_001);
  });

  test('signs no event, however far the ledger’s time is behind, and no call, on any node', async () => {
    world.clock.jump(-30_000);
    there = node(slow.records);
    for (const { append, identities, call } of [here, there]) {
      expect(await append()).toBe('signing_key_revoked');
      const request = { ...call(), signature: { keyId: kid, signature: Buffer.alloc(64).toString('base64') } };
      const input = { eventType: 'NOTE', ledgerId, forms: ['{}'] as const };
      await expect(checkCallSignature(identities, request, 'if_keyed', input)).rejects.toMatchObject({
        code: 'signing_key_revoked',
        message: 'The signing key is revoked: sign with another key.',
        details: { signing_key_id: kid },
      });
    }
  });

  test('is still shown as active, and the newest key in use is preferred in its place', async () => {
    expect(await there.shown()).toMatchObject([
      { kid, status: 'ACTIVE', preferredSigning: false },
      { status: 'ACTIVE', preferredSigning: true },
    ]);
    const [key] = await there.shown();
    expect(key).not.toHaveProperty('revokedAt');
    expect(key).not.toHaveProperty('revokedReason');
  });

  test('keeps its mark through other changes, and is never preferred again', async () => {
    await there.enrol();
    expect(await there.prefer('key-3')).toBe('carried out');
    expect(await there.prefer('key-1')).toBe('key_not_active');
    expect(await here.append()).toBe('signing_key_revoked');
    const answer = there.revoke();
    await world.clock.advance(leadMs);
    expect(await answer).toBe('carried out');
    expect(await there.shown()).toMatchObject([
      { status: 'REVOKED', preferredSigning: false, revokedReason: 'lost' },
      { preferredSigning: false },
      { preferredSigning: true },
    ]);
  });

  test('is ended by one write on a node that stands alone', async () => {
    const alone = node(slow.records, 0);
    const puts = slow.puts;
    const answer = alone.revoke();
    await world.clock.advance(1);
    expect(await answer).toBe('carried out');
    expect(slow.puts).toBe(puts + 1);
    expect(await endOfKey()).toBe(iso(world.clock.now()));
  });
});

describe('on a node that stands alone', () => {
  beforeEach(() => {
    here = node(slow.records, 0);
    there = here;
  });

  test('one write ends the key, and the end counts from before it', async () => {
    slow.next('hangs');
    const begunMs = world.clock.now();
    const answer = here.revoke();
    expect(await here.append()).toBe('carried out');
    expect(await appending(3_000)).toEqual([]);
    await slow.land();
    expect(await answer).toBe('carried out');
    expect(slow.puts).toBe(1);
    expect(await endOfKey()).toBe(iso(begunMs + 1));
  });

  test('a read during the write does not make the key valid again', async () => {
    slow.next('hangs');
    const answer = here.revoke();
    await world.clock.advance(5);
    await here.shown();
    await slow.land();
    await world.clock.advance(5);
    expect(await answer).toBe('carried out');
    expect(await appending(2_000)).toEqual([]);
    expect((await here.identities.recent(supplier))?.keys[0]?.revokedAt).not.toBeNull();
    await endOfKey();
  });

  test('an event whose keys were read just before the write landed is refused', async () => {
    slow.next('hangs');
    const answer = here.revoke();
    await world.clock.advance(3_000);
    const read = world.memory.readScope.bind(world.memory);
    world.memory.readScope = async (...args) => {
      await slow.land();
      await settled();
      return read(...args);
    };
    const fresh = new LedgerActor(ledgerId, { ...world.parts, keys: here.keys });
    expect(await codeOf(fresh.submit(signed()))).toBe('signing_key_revoked');
    expect(await answer).toBe('carried out');
    await endOfKey();
  });

  test('the end counts although another revocation of the key fails meanwhile', async () => {
    slow.next('hangs');
    const answer = here.revoke();
    await world.clock.advance(5);
    const ending = new AbortController();
    const other = here.revoke('lost', world.clock.now(), ending);
    ending.abort();
    expect(await other).toBe('unavailable');
    expect(await appending(1_000)).toEqual([]);
    await slow.land();
    expect(await answer).toBe('carried out');
    await endOfKey();
  });

  test('an end with an unknown outcome counts, and one that was certainly not written does not', async () => {
    slow.next('never');
    expect(await here.revoke()).toBe('unavailable');
    await world.clock.advance(10);
    expect(await here.append()).toBe('carried out');
    slow.next('untold');
    expect(await here.revoke()).toBe('outcome_unknown');
    await world.clock.advance(10);
    expect(await appending(5_000)).toEqual([]);
    await slow.land();
    expect(await appending(1_000)).toEqual([]);
    await endOfKey();
  });
});
