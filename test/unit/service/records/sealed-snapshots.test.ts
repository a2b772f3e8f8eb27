import { describe, expect, test } from 'vitest';
import { snapshotWhenLeavingEvents } from '../../../../src/actors/bounds.ts';
import type { LedgerActor } from '../../../../src/actors/ledger/ledger-actor.ts';
import { type SnapshotFault, sealedSnapshots } from '../../../../src/service/records/sealed-snapshots.ts';
import type { Snapshot } from '../../../../src/store/ledger-store.ts';
import {
  append,
  closeLedger,
  createMaster,
  grant,
  ledgerId,
  masterId,
  openLedger,
  revoke,
  stranger,
  supplier,
} from '../../../support/commands.ts';
import { emptyLedgerData, type MemoryLedgerData } from '../../../support/memory-store/ledger-data.ts';
import { codeOf, rig } from '../../../support/world.ts';

const secretsKey = Buffer.alloc(32, 7);

/** A node over the data, and what it said of snapshots. */
function node(data: MemoryLedgerData, key = secretsKey) {
  const refused: [string, SnapshotFault][] = [];
  let reads = 0;
  const world = rig({
    data,
    wrap: (memory) => {
      const sealed = sealedSnapshots(memory, key, (owner, fault) => void refused.push([owner, fault]));
      return {
        ...sealed,
        read: (ledger, from, limit) => {
          reads += limit === 1 ? 0 : 1;
          return sealed.read(ledger, from, limit);
        },
      };
    },
  });
  return { ...world, refused, replays: () => reads };
}

async function grow(actor: LedgerActor): Promise<void> {
  await Promise.all(Array.from({ length: snapshotWhenLeavingEvents }, () => actor.submit(append())));
}

/** Data of one ledger with a master, both with a snapshot. */
async function ledgerWithSnapshots(): Promise<MemoryLedgerData> {
  const data = emptyLedgerData();
  const actor = node(data).newActor();
  await actor.submit(openLedger());
  await actor.submit(createMaster());
  await grow(actor);
  await actor.close();
  expect([...data.snapshots.keys()].sort()).toEqual([ledgerId, masterId].sort());
  return data;
}

const forgedGrant = {
  ...{ linkId: 'x', role: 'OPS', permissions: '{}', access: 'write', grantedAt: '2020-01-01T00:00:00.000Z' },
  ...{ delegateActorId: stranger, expiresAt: null, grantedByActorId: '', eventId: '' },
};
const unsealed = ({ state }: Snapshot) => state.replace(/^sealed1 \S+ /, '');
/** The content of a snapshot as a forger wants it. */
const forged = (snapshot: Snapshot) =>
  JSON.stringify({
    ...(JSON.parse(unsealed(snapshot)) as object),
    createdAt: '2099-01-01T00:00:00.000Z',
    ledgerGrants: [forgedGrant],
    grants: [forgedGrant],
  });

const forgeries: readonly (readonly [string, SnapshotFault, (of: Snapshot, other: Snapshot) => Snapshot])[] = [
  ['without a seal', 'unsealed', (of) => ({ ...of, state: forged(of) })],
  ['with an old seal', 'wrong_seal', (of) => ({ ...of, state: of.state.replace(/\{.*$/, forged(of)) })],
  ['with a seal of its own', 'wrong_seal', (of) => ({ ...of, state: `sealed1 ${'A'.repeat(44)} ${forged(of)}` })],
  ['that says another place', 'wrong_seal', (of) => ({ ...of, seq: of.seq - 1 })],
  ['that says another hash', 'wrong_seal', (of) => ({ ...of, hash: '0'.repeat(64) })],
  ['that is another’s', 'wrong_seal', (_of, other) => other],
];

describe.each([
  ['a ledger', ledgerId, masterId],
  ['a master', masterId, ledgerId],
])('a snapshot of %s', (_name, owner, other) => {
  test('is used with its seal', async () => {
    const data = await ledgerWithSnapshots();
    const again = node(data);
    await again.newActor().submit(append());
    expect(again.refused).toEqual([]);
    expect(again.replays()).toBe(0);
  });

  test.each(forgeries)('is not used %s: the state is that of the log', async (_how, fault, forge) => {
    const data = await ledgerWithSnapshots();
    const [of, others] = [data.snapshots.get(owner), data.snapshots.get(other)];
    if (of === undefined || others === undefined) throw new Error('no snapshot');
    data.snapshots.set(owner, forge(of, others));
    const again = node(data);
    const actor = again.newActor();
    expect(await codeOf(actor.submit(append({ actorId: stranger })))).toBe('not_found');
    const { event } = await actor.submit(append());
    expect(event.createdAt < '2099').toBe(true);
    expect(again.refused).toEqual([[owner, fault]]);
  });

  test('is not used under another secrets key', async () => {
    const data = await ledgerWithSnapshots();
    const again = node(data, Buffer.alloc(32, 8));
    await again.newActor().submit(append());
    expect(again.refused).toContainEqual([owner, 'wrong_seal']);
  });
});

test('stale genuine snapshots bring back no grant that was revoked, and open no ledger that was closed', async () => {
  const data = emptyLedgerData();
  const actor = node(data).newActor();
  await actor.submit(openLedger());
  await actor.submit(createMaster());
  await actor.submit(grant({ delegateActorId: stranger, access: 'write' }));
  await actor.submit(grant({ scope: 'ledger', role: 'OPS', delegateActorId: stranger }));
  await grow(actor);
  await actor.close();
  const stale = new Map(data.snapshots);
  const later = node(data).newActor();
  await later.submit(revoke({ delegateActorId: stranger }));
  await later.submit(revoke({ scope: 'ledger', delegateActorId: stranger }));
  await grow(later);
  await later.close();
  const setBack = () => stale.forEach((snapshot, owner) => void data.snapshots.set(owner, snapshot));
  setBack();
  const again = node(data);
  const revived = again.newActor();
  expect(await codeOf(revived.submit(append({ actorId: stranger })))).toBe('not_found');
  expect(again.refused).toEqual([]);
  await revived.submit(closeLedger({ actorId: supplier }));
  await revived.close();
  setBack();
  expect(await codeOf(node(data).newActor().submit(append()))).toBe('ledger_closed');
});

test('a snapshot whose own event was changed in the log is not used', async () => {
  const data = await ledgerWithSnapshots();
  expect(data.ledgers.get(ledgerId)).toBeDefined();
  const seq = data.snapshots.get(ledgerId)?.seq ?? 0;
  const [entry] = await node(data).parts.store.read(ledgerId, seq, 1);
  const row = entry?.row.replace('"SHIPMENT_DISPATCHED"', '"SHIPMENT_DELIVERED_"') ?? '';
  const actor = rig({
    data,
    wrap: (memory) => {
      const sealed = sealedSnapshots(memory, secretsKey, () => {});
      const read: typeof sealed.read = async (id, from, limit) =>
        (await sealed.read(id, from, limit)).map((one) => (one.seq === seq ? { seq, row } : one));
      return { ...sealed, read };
    },
  }).newActor();
  await expect(actor.submit(append())).rejects.toMatchObject({ code: expect.stringMatching(/internal|unavailable/) });
});
