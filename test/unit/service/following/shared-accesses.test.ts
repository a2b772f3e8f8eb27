import { describe, expect, test } from 'vitest';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { grantBytes } from '../../../../src/service/following/reader-access.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';
import { append, createMaster, delegate, grant, masterId, revoke, stranger, uuid } from '../../../support/commands.ts';
import { FollowersRig, type RigStream } from '../../../support/followers-rig.ts';
import { beforeCalls } from '../../../support/world.ts';

const secondMs = 1_000;
const masters = 20;
const otherId = (n: number) => uuid(0x100 + n);

const createOther = (n: number) => createMaster({ masterId: otherId(n), businessRef: `PO-1${n}` });
const grantOther = (n: number) => grant({ masterId: otherId(n), access: 'read', linkId: uuid(0x1000 + n) });

/** A ledger with as many masters, all of which the delegate may read. */
async function rigOf(options: ConstructorParameters<typeof FollowersRig>[0] = {}): Promise<FollowersRig> {
  const rig = await FollowersRig.withMaster(options);
  await rig.commit(grant({ access: 'read' }));
  for (let n = 1; n < masters; n += 1) await rig.commit(createOther(n), grantOther(n));
  return rig;
}

/** The same over a store that shows events only while its tail is not blind. */
async function rigWithTail(): Promise<{ readonly rig: FollowersRig; readonly tail: { isBlind: boolean } }> {
  const tail = { isBlind: false };
  const read = () => {
    if (tail.isBlind) throw new Error('the store does not answer');
  };
  return { rig: await rigOf({ store: (inner) => beforeCalls(inner, { read }) }), tail };
}

async function streamsOf(rig: FollowersRig, count: number): Promise<RigStream[]> {
  const streams = Array.from({ length: count }, () => rig.followLedger(delegate));
  await rig.settle();
  return streams;
}

/** A budget of which a quarter, which grants may hold, has room for as many. */
const budgetOf = (grants: number) => new MemoryBudget(4 * grants * grantBytes);
const held = ({ memory }: FollowersRig) => memory.heldBytes('stream') / grantBytes;

describe('the streams of a delegate of many masters', () => {
  test('hold its grants once, and give them back with the last of the streams', async () => {
    const rig = await rigOf();
    const streams = await streamsOf(rig, 5);
    expect(held(rig)).toBe(masters);
    await rig.commit(createOther(masters), grantOther(masters));
    await rig.settle();
    expect(held(rig)).toBe(masters + 1);
    for (const stream of streams) {
      expect([stream.shown.length, held(rig)]).toEqual([3, masters + 1]);
      stream.leave();
      await stream.done;
    }
    expect(held(rig)).toBe(0);
  });

  test('hold nothing for a stream that could not begin', async () => {
    const rig = await rigOf();
    const refused = rig.followLedger(delegate, { afterSeq: 1_000n });
    await refused.done;
    expect([refused.error?.code, held(rig)]).toEqual(['invalid_argument', 0]);
  });

  test('are overloaded where the memory budget has no room for the grants', async () => {
    const rig = await rigOf({ memory: budgetOf(masters - 1) });
    const [refused] = await streamsOf(rig, 1);
    expect(refused?.error).toMatchObject({ code: 'overloaded', details: { bound: 'MEMORY_BUDGET_MIB' } });
    // One of its masters needs no more than a party does.
    const ofMaster = rig.followMaster(delegate);
    await rig.settle();
    expect([ofMaster.shown, held(rig)]).toEqual([['caughtUp'], 0]);
  });

  test('end as overloaded if a delegate with fewer grants needs the memory', async () => {
    const rig = await rigOf({ memory: budgetOf(masters) });
    const streams = await streamsOf(rig, 2);
    await rig.commit(grant({ access: 'read', delegateActorId: stranger, linkId: uuid(0x2000) }));
    const other = rig.followLedger(stranger);
    await rig.settle();
    await rig.pass(secondMs);
    for (const { error } of streams) expect(error?.code).toBe('overloaded');
    expect([other.error, held(rig)]).toEqual([null, 1]);
    const [again] = await streamsOf(rig, 1);
    expect([again?.error?.code, other.error, held(rig)]).toEqual(['overloaded', null, 1]);
  });

  test('end as overloaded before an event of a master whose grant finds no room any more', async () => {
    const rig = await rigOf({ memory: budgetOf(masters) });
    const streams = await streamsOf(rig, 2);
    await rig.commit(createOther(masters), grantOther(masters), append({ masterId: otherId(masters) }));
    await rig.settle();
    for (const { shown, error } of streams) expect([shown, error?.code]).toEqual([['caughtUp'], 'overloaded']);
    expect([rig.ended, held(rig)]).toEqual([['overloaded', 'overloaded'], 0]);
  });

  test('all end with the revocation of one of its grants, and a new one goes on with the others', async () => {
    const rig = await rigOf();
    const streams = await streamsOf(rig, 5);
    const revoked = await rig.commit(revoke({ masterId: otherId(7) }), append());
    const later = rig.followLedger(delegate);
    await rig.settle();
    for (const stream of streams) {
      expect(stream.error?.code).toBe('permission_denied');
      expect(Math.max(...stream.toldSeqs)).toBeLessThan(revoked.seq - 1);
    }
    await rig.commit(append({ masterId }), append({ masterId: otherId(7) }), append({ masterId: otherId(8) }));
    await rig.settle();
    const { seq } = revoked;
    expect([later.shown, later.error, held(rig)]).toEqual([['caughtUp', seq + 1, seq + 3], null, masters]);
  });

  test('all end if what is stored shows to one of them that a grant has ended', async () => {
    const { rig, tail } = await rigWithTail();
    const streams = await streamsOf(rig, 3);
    tail.isBlind = true;
    await rig.commit(revoke({ masterId: otherId(7) }));
    await rig.settle();
    for (const { error } of streams) expect(error).toBeNull();
    await rig.pass(1_500);
    for (const { error } of streams) expect(error?.code).toBe('permission_denied');
  });

  test('are compared with what is stored once for all of them', async () => {
    let cells = 0;
    const store = (inner: LedgerStore) => beforeCalls(inner, { cell: () => void cells++ });
    const rig = await rigOf({ store });
    await streamsOf(rig, 5);
    cells = 0;
    await rig.pass(10 * secondMs);
    // With the grant of the ledger itself.
    expect(cells).toBe(masters + 1);
  });

  test('are compared with what is stored less and less often while the store fails, and again once it answers', async () => {
    let cells = 0;
    let isBroken = false;
    const store = (inner: LedgerStore) =>
      beforeCalls(inner, {
        read: () => {
          if (isBroken) throw new Error('the store does not answer');
        },
        cell: () => {
          cells += 1;
          if (isBroken) throw new Error('the store does not answer');
        },
      });
    const rig = await rigOf({ store });
    const streams = await streamsOf(rig, 2);
    cells = 0;
    isBroken = true;
    await rig.pass(4 * secondMs);
    // After 1 s, and 1 s and 2 s later.
    const asked = cells;
    expect(asked).toBeGreaterThanOrEqual(2);
    await rig.pass(60 * secondMs);
    expect(cells).toBeLessThanOrEqual(3 * asked);
    isBroken = false;
    cells = 0;
    await rig.pass(70 * secondMs);
    expect(cells).toBeGreaterThanOrEqual(masters + 1);
    expect(streams.map(({ error }) => error)).toEqual([null, null]);
  });

  test('go on if their actor is granted one more master while something else fills the budget', async () => {
    const rig = await rigOf({ memory: budgetOf(2 * masters) });
    const streams = await streamsOf(rig, 2);
    const { maxBytes } = rig.memory;
    const otherBytes = maxBytes - rig.memory.heldBytes();
    rig.memory.add('request', otherBytes);
    const { seq } = await rig.commit(createOther(masters), grantOther(masters), append({ masterId: otherId(masters) }));
    await rig.settle();
    for (const { shown, error } of streams) expect([shown, error]).toEqual([['caughtUp', seq - 2, seq - 1, seq], null]);
    expect(held(rig)).toBe(masters + 1);
    rig.memory.release('request', otherBytes);
  });

  test('end by a revocation although the grant was given anew before the node read of it', async () => {
    const { rig, tail } = await rigWithTail();
    const streams = await streamsOf(rig, 2);
    tail.isBlind = true;
    const again = { access: 'read', masterId: otherId(7), linkId: uuid(0x3000) } as const;
    const { seq } = await rig.commit(revoke({ masterId: otherId(7) }), grant(again));
    const later = rig.followLedger(delegate, { afterSeq: BigInt(seq) });
    await rig.settle();
    expect(held(rig)).toBe(2 * masters);
    tail.isBlind = false;
    await rig.pass(secondMs);
    for (const { error } of streams) expect(error?.code).toBe('permission_denied');
    const added = await rig.commit(append({ masterId: otherId(7) }));
    await rig.settle();
    expect([later.shown, later.error]).toEqual([['caughtUp', added.seq], null]);
    await streamsOf(rig, 1);
    expect(held(rig)).toBe(masters);
  });

  test('say when to come back if they are overloaded', async () => {
    const rig = await rigOf({ memory: budgetOf(masters) });
    const streams = await streamsOf(rig, 1);
    await rig.commit(grant({ access: 'read', delegateActorId: stranger, linkId: uuid(0x2000) }));
    rig.followLedger(stranger);
    await rig.settle();
    await rig.pass(secondMs);
    const again = await streamsOf(rig, 1);
    const details = { bound: 'MEMORY_BUDGET_MIB', retry_after_ms: expect.any(Number) };
    for (const { error } of [...streams, ...again]) {
      expect(error).toMatchObject({ code: 'overloaded', details });
      expect(error?.message).not.toContain('written');
    }
  });
});
