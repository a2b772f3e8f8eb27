import { describe, expect, test } from 'vitest';
import { isoTime } from '../../../src/domain/values/time.ts';
import {
  append,
  closeLedger,
  createMaster,
  grant,
  openLedger,
  signature,
  stranger,
  supplier,
} from '../../support/commands.ts';
import type { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';
import { beforeCalls, codeOf, type Rig, rig, start, startMs } from '../../support/world.ts';

const kid = `svc:actor:${supplier}#key-1`;
const signed = append({ signature: signature(kid), signatureRule: 'if_keyed' });
const unsigned = append({ signatureRule: 'if_keyed' });

const good = { validFrom: start, revokedAt: null };

async function opened() {
  const world = rig();
  const actor = world.newActor();
  await Promise.all([actor.submit(openLedger()), actor.submit(createMaster({ signatureRule: 'optional' }))]);
  return { ...world, actor };
}

/** Another actor of the ledger. `happens` is called before the master's events are read. */
function withSlowMasters({ clock, data, keys }: Rig, happens: () => void) {
  const wrap = (memory: MemoryLedgerStore) =>
    beforeCalls(memory, {
      readScope: () => {
        happens();
      },
    });
  return rig({ clock, data, keys, wrap }).newActor();
}

describe('the key of a signed command', () => {
  test('is recorded, and the authority seals nothing', async () => {
    const { actor, keys } = await opened();
    keys.enrol(supplier, kid);
    const { event } = await actor.submit(signed);
    expect(event).toMatchObject({ signingKeyId: kid, actorSig: signature(kid).signature, authoritySig: null });
  });

  test.each([
    ['if it ends a millisecond after created_at', 'carried out', { revokedAt: isoTime(startMs + 1) }],
    ['if it ends at created_at', 'signing_key_revoked', { revokedAt: start }],
    ['if it ended a millisecond before created_at', 'signing_key_revoked', { revokedAt: isoTime(startMs - 1) }],
    ['if it begins at created_at', 'carried out', { validFrom: start }],
    ['if it begins a millisecond after created_at', 'unknown_signing_key', { validFrom: isoTime(startMs + 1) }],
  ])('%s: %s', async (_, code, life) => {
    const { actor, keys } = await opened();
    keys.enrol(supplier, kid, life);
    expect(await codeOf(actor.submit(signed))).toBe(code);
  });

  test('once its end has begun it signs nothing, and the refusal has no time before one is stored', async () => {
    for (const [revokedAt, details] of [
      [null, {}],
      [isoTime(startMs + 2_000), { revoked_at: isoTime(startMs + 2_000) }],
    ] as const) {
      const { actor, keys } = await opened();
      keys.enrol(supplier, kid, { isEnding: true, revokedAt });
      const message = 'The signing key is revoked: sign with another key.';
      await expect(actor.submit(signed)).rejects.toMatchObject({ code: 'signing_key_revoked', message, details });
    }
  });

  test('it is created_at that counts, which may be ahead of the clock', async () => {
    const { actor, keys, clock } = await opened();
    clock.jump(10_000);
    await actor.submit(append({ signatureRule: 'optional' }));
    clock.jump(-10_000);
    keys.enrol(supplier, kid, { revokedAt: isoTime(startMs + 5_000) });
    expect(await codeOf(actor.submit(signed))).toBe('signing_key_revoked');
  });

  test('was looked at for the very time that the event carries, however long the process stood still in between', async () => {
    const { actor, keys, clock } = await opened();
    keys.cached.set(supplier, new Map([[kid, good]]));
    const fresh = keys.fresh.bind(keys);
    let asked = 0;
    keys.fresh = (actorId) => {
      // The first to ask decides what has to be read, the second what is known then.
      if (++asked === 2) clock.jump(600);
      return fresh(actorId);
    };
    const { event } = await actor.submit(signed);
    expect(event.createdAt).toBe(isoTime(startMs));
  });

  test('has to be one of the actor’s own', async () => {
    const { actor, keys } = await opened();
    keys.enrol(stranger, kid);
    expect(await codeOf(actor.submit(signed))).toBe('unknown_signing_key');
    keys.enrol(supplier, `${kid}0`);
    expect(await codeOf(actor.submit(signed))).toBe('unknown_signing_key');
  });

  test('is looked at before permission, and where signing is optional too', async () => {
    const { actor, keys } = await opened();
    keys.enrol(supplier, kid, { revokedAt: start });
    keys.enrol(stranger, kid, { revokedAt: start });
    for (const command of [signed, { ...signed, actorId: stranger }, { ...signed, signatureRule: 'optional' as const }])
      expect(await codeOf(actor.submit(command))).toBe('signing_key_revoked');
    const close = closeLedger({ signature: signature(kid), signatureRule: 'optional' });
    expect(await codeOf(actor.submit(close))).toBe('signing_key_revoked');
  });
});

describe('an unsigned command', () => {
  test('of an actor that has, or had, a key is refused in the batch', async () => {
    const { actor, keys, log } = await opened();
    expect(await codeOf(actor.submit(unsigned))).toBe('carried out');
    keys.enrol(supplier, kid, { revokedAt: '2021-01-01T00:00:00.000Z' });
    expect(await codeOf(actor.submit(unsigned))).toBe('signature_required');
    keys.enrol(supplier, kid);
    expect(await codeOf(actor.submit(unsigned))).toBe('signature_required');
    expect(await codeOf(actor.submit(grant({ signatureRule: 'if_keyed' })))).toBe('signature_required');
    expect(await log()).toHaveLength(4);
  });

  test('is fine where signing is optional, and asks for no keys then', async () => {
    const { actor, keys } = await opened();
    keys.enrol(supplier, kid);
    expect(await codeOf(actor.submit(append({ signatureRule: 'optional' })))).toBe('carried out');
    expect(keys.reads).toBe(0);
  });

  test('that nobody has a key is asked anew each time', async () => {
    const { actor, keys } = await opened();
    await actor.submit(unsigned);
    await actor.submit(unsigned);
    expect(keys.reads).toBe(2);
    await Promise.all([unsigned, unsigned, unsigned].map((one) => actor.submit(one)));
    expect(keys.reads).toBe(3);
  });
});

describe('keys that change while a batch reads', () => {
  test('revoked on this node meanwhile: refused, by the keys in memory when the batch is decided', async () => {
    const { actor, keys, clock, log } = await opened();
    keys.enrol(supplier, kid);
    keys.onRead = () => {
      clock.jump(3);
      keys.cached.set(supplier, new Map([[kid, { validFrom: start, revokedAt: isoTime(clock.now()) }]]));
    };
    expect(await codeOf(actor.submit(signed))).toBe('signing_key_revoked');
    expect(await log()).toHaveLength(3);
  });

  test('revoked while something else is read: refused, though memory had the key as good before', async () => {
    const world = await opened();
    const { keys, clock } = world;
    keys.cached.set(supplier, new Map([[kid, good]]));
    const other = withSlowMasters(world, () => {
      clock.jump(3);
      keys.cached.set(supplier, new Map([[kid, { ...good, revokedAt: isoTime(clock.now()) }]]));
    });
    expect(await codeOf(other.submit(signed))).toBe('signing_key_revoked');
    expect(await world.log()).toHaveLength(3);
  });

  test('revoked in the last moment before the batch is decided: refused', async () => {
    const { actor, keys, clock } = await opened();
    keys.cached.set(supplier, new Map([[kid, good]]));
    let looks = 0;
    const fresh = keys.fresh.bind(keys);
    keys.fresh = (actorId) => {
      looks++;
      // As soon as the second look waits for anything.
      const revoke = () => keys.cached.set(supplier, new Map([[kid, { ...good, revokedAt: isoTime(clock.now()) }]]));
      if (looks === 2) queueMicrotask(revoke);
      return fresh(actorId);
    };
    expect(await codeOf(actor.submit(signed))).toBe('signing_key_revoked');
  });

  test('the first key enrolled meanwhile: the unsigned command is refused', async () => {
    const { actor, keys } = await opened();
    keys.onRead = () => void keys.cached.set(supplier, new Map([[kid, good]]));
    expect(await codeOf(actor.submit(unsigned))).toBe('signature_required');
  });

  test('a record read half a second ago is read again before it is relied on', async () => {
    const { actor, keys, clock } = await opened();
    keys.enrol(supplier, kid);
    let slow = true;
    keys.onRead = () => {
      if (slow) clock.jump(501);
      if (slow) keys.enrol(supplier, kid, { revokedAt: isoTime(clock.now()) });
      slow = false;
    };
    expect(await codeOf(actor.submit(signed))).toBe('signing_key_revoked');
    expect(keys.reads).toBe(2);
  });

  test('what memory no longer vouches for in the end is read again, not taken for no keys', async () => {
    const world = await opened();
    const { keys } = world;
    keys.enrol(supplier, kid);
    keys.cached.set(supplier, new Map([[kid, good]]));
    const other = withSlowMasters(world, () => keys.cached.clear());
    expect(await codeOf(other.submit(unsigned))).toBe('signature_required');
    expect(keys.reads).toBe(1);
    expect(await codeOf(world.actor.submit(signed))).toBe('carried out');
  });

  test('where they can never be read in time: unavailable at the deadline, nothing written', async () => {
    const { actor, keys, clock, log } = await opened();
    keys.enrol(supplier, kid);
    keys.onRead = () => clock.jump(600);
    expect(await codeOf(actor.submit({ ...signed, deadline: startMs + 10_000 }))).toBe('unavailable');
    expect(keys.reads).toBeGreaterThan(10);
    expect(await log()).toHaveLength(3);
  });
});
