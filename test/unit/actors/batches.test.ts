import { describe, expect, test } from 'vitest';
import { batchBytesMax, batchEventsMax, rowBytesMax, rowFrameBytesMax } from '../../../src/actors/bounds.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import { uuidV7Time } from '../../../src/domain/values/uuid.ts';
import {
  append,
  closeLedger,
  closeMaster,
  commandKey,
  createMaster,
  delegate,
  grant,
  ledgerId,
  masterId,
  openLedger,
  revoke,
  siblingId,
  signature,
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { codeOf, codesOf, faultsOf, rig } from '../../support/world.ts';

/** A ledger with two masters, in memory. */
async function opened() {
  const world = rig();
  const actor = world.newActor();
  await Promise.all([
    actor.submit(openLedger()),
    actor.submit(createMaster()),
    actor.submit(createMaster({ masterId: siblingId })),
  ]);
  world.meter.batches.length = 0;
  return { ...world, actor };
}

/** A payload whose event counts so many bytes. */
function payloadOf(bytes: number, character = 'a'): string {
  return `{"a":"${character.repeat((bytes - 8) / Buffer.byteLength(character))}"}`;
}

describe('many commands at once', () => {
  test('200 become one chain without a gap, each of them once', async () => {
    const { actor, log, meter } = await opened();
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        actor.submit(append({ masterId: index % 3 === 0 ? siblingId : masterId, payload: `{"index":${index}}` })),
      ),
    );
    const events = await log();
    expect(faultsOf(events)).toEqual([]);
    expect(events).toHaveLength(4 + 200);
    for (const [index, { event, replayed }] of outcomes.entries()) {
      expect(replayed).toBe(false);
      expect(event).toEqual(events[4 + index]);
      expect(event.payload).toBe(`{"index":${index}}`);
    }
    expect(meter.batches.reduce((sum, count) => sum + count, 0)).toBe(200);
  });

  test('what is refused stands between what is written and leaves no trace', async () => {
    const { actor, log } = await opened();
    const codes = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        codeOf(actor.submit(append({ actorId: index % 2 === 0 ? supplier : stranger }))),
      ),
    );
    expect(codes).toEqual(Array.from(codes, (_, index) => (index % 2 === 0 ? 'carried out' : 'not_found')));
    expect(await log()).toHaveLength(4 + 30);
    expect(faultsOf(await log())).toEqual([]);
  });

  test('those that come while a write is in flight form the next batch', async () => {
    const { actor, meter } = await opened();
    const first = actor.submit(append());
    await Promise.resolve();
    await Promise.resolve();
    const rest = [1, 2, 3].map(() => actor.submit(append()));
    await Promise.all([first, ...rest]);
    expect(meter.batches).toEqual([1, 3]);
  });
});

describe('a batch is bounded', () => {
  test('by the number of its events', async () => {
    const { actor, meter } = await opened();
    await Promise.all(Array.from({ length: 130 }, () => actor.submit(append())));
    expect(meter.batches).toEqual([batchEventsMax, batchEventsMax, 2]);
  });

  test('by bytes: as many as fit', async () => {
    const { actor, meter } = await opened();
    const payload = payloadOf(100 * 1024);
    await Promise.all(Array.from({ length: 5 }, () => actor.submit(append({ payload }))));
    expect(meter.batches).toEqual([2, 2, 1]);
  });

  test('in bytes of UTF-8 and not in characters', async () => {
    const { actor, meter } = await opened();
    const payload = payloadOf(100 * 1024, '語');
    await Promise.all(Array.from({ length: 4 }, () => actor.submit(append({ payload }))));
    expect(meter.batches).toEqual([2, 2]);
  });

  test('a signed form that is stored beside the payload counts too', async () => {
    const { actor, meter, keys } = await opened();
    keys.enrol(supplier, 'kid');
    const payload = payloadOf(100 * 1024);
    const both = append({ payload, signature: signature('kid', payload.replace('a', 'b')) });
    await Promise.all(Array.from({ length: 3 }, () => actor.submit(both)));
    expect(meter.batches).toEqual([1, 1, 1]);
  });

  test('one event that is larger goes alone', async () => {
    const { actor, meter, log } = await opened();
    const large = payloadOf(batchBytesMax);
    await Promise.all([append(), append({ payload: large }), append(), append()].map((one) => actor.submit(one)));
    expect(meter.batches).toEqual([1, 1, 2]);
    expect(faultsOf(await log())).toEqual([]);
  });
});

describe('a row is bounded', () => {
  const textsBytesMax = rowBytesMax - rowFrameBytesMax;

  test('a command whose event would be larger is refused, and those beside it are written', async () => {
    const { actor, log } = await opened();
    const requested = `{"delegate_actor_id":"${delegate}","permissions":${payloadOf(textsBytesMax)},"role":"OPS"}`;
    const codes = await codesOf(
      actor,
      append(),
      append({ payload: payloadOf(textsBytesMax + 1) }),
      append({ payload: payloadOf(textsBytesMax + 3, '語') }),
      grant({ requested, permissions: payloadOf(textsBytesMax) }),
      append(),
    );
    expect(codes).toEqual(['carried out', ...Array(3).fill('payload_too_large'), 'carried out']);
    expect(await log()).toHaveLength(4 + 2);
    expect(faultsOf(await log())).toEqual([]);
  });

  test('what was signed counts where it is stored beside the payload', async () => {
    const { actor, keys } = await opened();
    keys.enrol(supplier, 'kid');
    const half = payloadOf(textsBytesMax / 2);
    const signedAs = (signedForm: string) => append({ payload: half, signature: signature('kid', signedForm) });
    const codes = await codesOf(
      actor,
      signedAs(half),
      signedAs(`${half.slice(0, -1)} }`),
      signedAs(` ${half.slice(1)}`),
    );
    expect(codes).toEqual(['carried out', 'payload_too_large', 'carried out']);
  });

  test('the rest of the row of the largest event fits', async () => {
    const { actor, memory } = await opened();
    const commandKeys = ['a', 'b'].map((id) => commandKey(id.repeat(64), id.repeat(64), true));
    const { event } = await actor.submit(
      append({
        eventType: `T${'y'.repeat(127)}`,
        payload: payloadOf(textsBytesMax),
        causedByHash: 'ab'.repeat(32),
        commandKeys,
      }),
    );
    const [entry] = await memory.read(ledgerId, event.seq, 1);
    expect(Buffer.byteLength(entry?.row ?? '')).toBeLessThanOrEqual(rowBytesMax);
    expect(Buffer.byteLength(entry?.row ?? '') - textsBytesMax).toBeGreaterThan(rowFrameBytesMax / 4);
  });
});

describe('commands of one batch see what is before them in it', () => {
  test('a revocation shuts out the append behind it, not the one before', async () => {
    const { actor, meter, log } = await opened();
    await actor.submit(grant());
    meter.batches.length = 0;
    const codes = await codesOf(actor, append({ actorId: delegate }), revoke(), append({ actorId: delegate }));
    expect(codes).toEqual(['carried out', 'carried out', 'not_found']);
    expect(meter.batches).toEqual([2]);
    expect(faultsOf(await log())).toEqual([]);
  });

  test('closing a ledger shuts out everything behind it but revocations', async () => {
    const { actor, meter } = await opened();
    await actor.submit(grant());
    meter.batches.length = 0;
    const commands = [append(), closeLedger(), append(), closeMaster(), revoke(), revoke()];
    const codes = await codesOf(actor, ...commands);
    expect(codes).toEqual(['carried out', 'carried out', 'ledger_closed', 'ledger_closed', 'carried out', 'not_found']);
    expect(meter.batches).toEqual([3]);
  });

  test('a master that is made in a batch can be used in it', async () => {
    const { actor, log } = await opened();
    const id = uuid(0x77);
    await Promise.all([
      actor.submit(createMaster({ masterId: id })),
      actor.submit(append({ masterId: id })),
      actor.submit(closeMaster({ masterId: id })),
    ]);
    expect(await codeOf(actor.submit(append({ masterId: id })))).toBe('master_closed');
    expect(faultsOf(await log())).toEqual([]);
  });

  test('two openings at once: one ledger', async () => {
    const { actor, log } = rigWithActor();
    const codes = await codesOf(actor, openLedger(), openLedger());
    expect(codes.toSorted()).toEqual(['already_exists', 'carried out']);
    expect((await log()).map(({ eventType }) => eventType)).toEqual(['GENESIS', 'ORDER_OPENED']);
  });
});

function rigWithActor() {
  const world = rig();
  return { ...world, actor: world.newActor() };
}

describe('time', () => {
  test('an id carries the time of its event', async () => {
    const { actor, clock, log } = await opened();
    for (const step of [0, 1, 999, 60_000]) {
      clock.jump(step);
      const { event } = await actor.submit(append());
      expect(Date.parse(event.createdAt)).toBe(clock.now());
    }
    for (const { id, createdAt } of await log()) expect(uuidV7Time(id)).toBe(Date.parse(createdAt));
  });

  test('a clock that goes back moves no event back, in memory nor after loading', async () => {
    const { actor: first, clock, log, ...world } = await opened();
    clock.jump(5_000);
    const { event } = await first.submit(append());
    clock.jump(-3_600_000);
    for (const actor of [first, world.newActor()]) {
      const later = (await actor.submit(append())).event;
      expect(later.createdAt).toBe(event.createdAt);
      expect(uuidV7Time(later.id)).toBe(Date.parse(event.createdAt));
    }
    expect(faultsOf(await log())).toEqual([]);
  });

  test('a grant runs out by the time that the event would carry', async () => {
    const { actor, clock } = await opened();
    await actor.submit(grant({ access: 'write', expiresAt: new Date(clock.now() + 1_000).toISOString() }));
    clock.jump(999);
    expect(await codeOf(actor.submit(append({ actorId: delegate })))).toBe('carried out');
    clock.jump(1);
    expect(await codeOf(actor.submit(append({ actorId: delegate })))).toBe('access_expired');
    clock.jump(1);
    await actor.submit(append());
    clock.jump(-10_000);
    expect(await codeOf(actor.submit(append({ actorId: delegate })))).toBe('access_expired');
  });
});

describe('a command that nobody can decide', () => {
  test('fails alone, and the ledger goes on', async () => {
    const { actor, log, ...world } = await opened();
    const poison = { ...grant(), requested: 'no JSON' };
    const results = await Promise.allSettled([append(), poison, append()].map((one) => actor.submit(one)));
    const codes = results.map((result) =>
      result.status === 'rejected' ? (result.reason as LedgerError).code : 'written',
    );
    expect(codes).toEqual(['unavailable', 'internal', 'unavailable']);
    for (const result of results) if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(LedgerError);
    expect(actor.stopped).toBe(true);
    expect(await log()).toHaveLength(4);
    expect(await codeOf(actor.submit(append()))).toBe('unavailable');
    expect(await codeOf(world.newActor().submit(append()))).toBe('carried out');
  });
});
