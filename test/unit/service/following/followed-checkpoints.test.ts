import { expect, test } from 'vitest';
import { verifyCheckpoint } from '../../../../src/domain/log/checkpoint.ts';
import { FollowedCheckpoints } from '../../../../src/service/following/followed-checkpoints.ts';
import type { ProvenLogs } from '../../../../src/service/proofs/proven-logs.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import { settled } from '../../../support/clock.ts';
import { append, buyer, createMaster, delegate, grant, openLedger, siblingId } from '../../../support/commands.ts';
import { FollowersRig, type RigStream } from '../../../support/followers-rig.ts';
import { vectorKey, vectorSigner } from '../../../support/log-keys.ts';
import { ledgerLog, masterLog } from '../../../support/proofs-rig.ts';

const beatMs = 15_000;

/** A rig that counts the checkpoints that were signed, with a ledger and a master. */
async function rigOf(change: (logs: ProvenLogs) => Partial<ProvenLogs> = () => ({})) {
  const counts = { signed: 0 };
  const rig = new FollowersRig({
    logs: (logs) => ({
      newestSize: (log, walk) => logs.newestSize(log, walk),
      checkpoint: (log, size, walk) => {
        counts.signed += 1;
        return logs.checkpoint(log, size, walk);
      },
      ...change(logs),
    }),
  });
  await rig.commit(openLedger(), createMaster());
  return { rig, counts };
}

async function beat(rig: FollowersRig): Promise<void> {
  await rig.settle();
  for (let passed = 0; passed < beatMs; passed += 250) {
    await rig.clock.advance(250);
    if (passed >= beatMs - 1_500) await rig.settle();
  }
}

const origin = ({ kind, id }: typeof ledgerLog) => `${vectorSigner.serviceName}/${kind}s/${id}`;
const sizeIn = (note: string | null | undefined, log: typeof ledgerLog) =>
  verifyCheckpoint(note ?? '', origin(log), [vectorKey]).size;

const lastOf = ({ checkpoints }: RigStream) => checkpoints.at(-1);

test('a heartbeat brings the newest checkpoint of the ledger or the master', async () => {
  const { rig } = await rigOf();
  const ofLedger = rig.followLedger(buyer);
  const ofMaster = rig.followMaster(buyer);
  await beat(rig);
  expect([sizeIn(lastOf(ofLedger), ledgerLog), sizeIn(lastOf(ofMaster), masterLog)]).toEqual([3, 1]);
  await rig.commit(append(), append());
  await beat(rig);
  expect([sizeIn(lastOf(ofLedger), ledgerLog), sizeIn(lastOf(ofMaster), masterLog)]).toEqual([5, 3]);
});

test('it is signed once for all followers, and again only if its log has more events', async () => {
  const { rig, counts } = await rigOf();
  await rig.commit(createMaster({ masterId: siblingId, businessRef: 'PO-2' }));
  const streams = Array.from({ length: 20 }, () => rig.followMaster(buyer));
  await beat(rig);
  await beat(rig);
  await rig.commit(append({ masterId: siblingId }));
  await beat(rig);
  expect(counts.signed).toBe(1);
  for (const { checkpoints } of streams) expect(new Set(checkpoints).size).toBe(1);
  await rig.commit(append());
  await beat(rig);
  expect(counts.signed).toBe(2);
});

test('it is forgotten when the last follower of its master leaves, though others follow the ledger', async () => {
  const { rig, counts } = await rigOf();
  rig.followLedger(buyer);
  const [first, second] = [rig.followMaster(buyer), rig.followMaster(buyer)];
  await beat(rig);
  expect(counts.signed).toBe(2);
  const comesBack = async (leaving: readonly RigStream[]) => {
    for (const stream of leaving) {
      stream.leave();
      await stream.done;
    }
    const back = rig.followMaster(buyer);
    await beat(rig);
    expect(sizeIn(lastOf(back), masterLog)).toBe(1);
    return back;
  };
  const third = await comesBack([first]);
  expect(counts.signed).toBe(2);
  await comesBack([second, third]);
  expect(counts.signed).toBe(3);
});

test('a delegate of single masters that follows the ledger gets none, and one of its master does', async () => {
  const { rig } = await rigOf();
  await rig.commit(grant({ access: 'read' }));
  const ofLedger = rig.followLedger(delegate);
  const ofMaster = rig.followMaster(delegate);
  await beat(rig);
  expect(ofLedger.checkpoints).toEqual([null]);
  expect(sizeIn(lastOf(ofMaster), masterLog)).toBe(2);
});

test('a heartbeat comes in time without a checkpoint that is late or cannot be made', async () => {
  const hanging = await rigOf(() => ({ newestSize: () => new Promise(() => {}) }));
  const failing = await rigOf(() => ({ checkpoint: () => Promise.reject(new Error('the log is behind')) }));
  for (const { rig } of [hanging, failing]) {
    const stream = rig.followLedger(buyer);
    await beat(rig);
    await beat(rig);
    expect([stream.checkpoints, stream.error]).toEqual([[null, null], null]);
  }
});

test('a checkpoint that cannot be made any more leaves the earlier one', async () => {
  let isFailing = false;
  const { rig } = await rigOf((logs) => ({
    checkpoint: (log, size, walk) =>
      isFailing ? Promise.reject(new Error('the log is behind')) : logs.checkpoint(log, size, walk),
  }));
  const stream = rig.followLedger(buyer);
  await beat(rig);
  isFailing = true;
  await rig.commit(append());
  await beat(rig);
  expect(stream.checkpoints.map((note) => sizeIn(note, ledgerLog))).toEqual([3, 3]);
});

test('a checkpoint is not shown before the tail has read all that it covers', async () => {
  const signed = { origin: 'o', size: 5, root: new Uint8Array(32), checkpoint: 'a note' };
  const checkpoints = new FollowedCheckpoints('l', {
    logs: { newestSize: async () => 5, checkpoint: async () => signed },
    ledgers: { head: async () => ({ seq: 4, hash: '' }) },
    monotonicMs: () => 0,
  });
  checkpoints.add(null);
  checkpoints.prepare(null, 3, (read) => read(unboundedWalk()));
  await settled();
  expect([checkpoints.newest(null, 3), checkpoints.newest(null, 4)]).toEqual([null, 'a note']);
});

test('a checkpoint that cannot be shown yet is not replaced by a newer one, which would have to wait as well', async () => {
  let nowMs = 0;
  let size = 5;
  const checkpoints = new FollowedCheckpoints('l', {
    logs: {
      newestSize: async () => size,
      checkpoint: async () => ({ origin: 'o', size, root: new Uint8Array(32), checkpoint: `note of ${size}` }),
    },
    ledgers: { head: async () => ({ seq: size - 1, hash: '' }) },
    monotonicMs: () => nowMs,
  });
  checkpoints.add(null);
  const shown: (string | null)[] = [];
  // The tail reads two events behind the head.
  for (; size < 9; size += 1) {
    nowMs += 2_000;
    checkpoints.prepare(null, size - 3, (read) => read(unboundedWalk()));
    await settled();
    shown.push(checkpoints.newest(null, size - 3));
  }
  expect(shown).toEqual([null, null, 'note of 5', 'note of 5']);
});
