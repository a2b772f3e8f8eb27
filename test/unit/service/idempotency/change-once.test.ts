import { describe, expect, test } from 'vitest';
import { actorService } from '../../../../src/service/actors/actors.ts';
import { enrolKey } from '../../../../src/service/actors/signing-keys.ts';
import { publicKeyOf } from '../../../../src/service/authority/authority.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { seededEntropy } from '../../../../src/service/calls/entropy.ts';
import { entityService } from '../../../../src/service/entities/entities.ts';
import { type EntityRecord, entityRules } from '../../../../src/service/entities/entity-record.ts';
import {
  type OrganizationRecord,
  organizationCollection,
} from '../../../../src/service/organizations/organization-record.ts';
import { organizationService } from '../../../../src/service/organizations/organizations.ts';
import { changeMutex } from '../../../../src/service/records/change-mutex.ts';
import { collection } from '../../../../src/service/records/collection.ts';
import { bareActor } from '../../../support/actor-record.ts';
import { buyer, ledgerId } from '../../../support/commands.ts';
import { identitiesIn } from '../../../support/identities.ts';
import { privateKeyOf } from '../../../support/log-keys.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';
import { startMs } from '../../../support/world.ts';

/** A run of the call with this seed. Runs with the same seed have the same ids. */
function runOf(seed: number): Call {
  const entropy = seededEntropy(Buffer.alloc(32, seed), startMs);
  return { caller: { actorId: buyer, mustSign: false }, now: startMs, newId: () => entropy.newId() } as Call;
}

/** A method that changes a record: `set` is a call with one of two values, `read` returns the stored value. */
interface Changing {
  set(call: Call, value: 0 | 1): Promise<unknown>;
  read(): Promise<unknown>;
}

async function preferring(): Promise<Changing> {
  const identities = identitiesIn(new MemoryRecordStore(), () => startMs);
  const keys = ['11', '22'].map((hex) => publicKeyOf(privateKeyOf(hex.repeat(32))));
  await identities.create(keys.reduce((actor, key) => enrolKey(actor, key, startMs), bareActor(buyer)));
  const { preferActorKey } = actorService(identities, async () => {});
  return {
    set: (call, value) =>
      preferActorKey({ actorId: buyer, kid: `key-${value + 1}` } as Parameters<typeof preferActorKey>[0], call),
    read: async () => (await identities.load(buyer))?.keys.findIndex((key) => key.preferred),
  };
}

async function gating(): Promise<Changing> {
  const records = new MemoryRecordStore();
  const entities = collection(records, entityRules);
  const entity = { actorId: buyer, requireArl: false, arlGateUpdatedAt: null, ownerActorId: null, trustLevel: 'BASIC' };
  const texts = { entityId: ledgerId, actorType: 'device', entityType: 'T', displayName: 'N', uniqueId: 'U' };
  await entities.create({ ...entity, ...texts, metadata: '{}', createdAt: '' } as EntityRecord);
  const none = null as never;
  const { setArlGate } = entityService(records, none, none, none, none, changeMutex());
  return {
    set: (call, value) => setArlGate({ requireArl: value === 1 } as Parameters<typeof setArlGate>[0], call),
    read: async () => Number((await entities.get(buyer))?.value.requireArl),
  };
}

async function enriching(): Promise<Changing> {
  const records = new MemoryRecordStore();
  const organizations = organizationCollection(records);
  const texts = { organizationId: ledgerId, actorId: buyer, requestId: '', frlLedgerId: ledgerId, createdAt: '' };
  await organizations.create({ ...texts, world: null, onboarding: {}, enriched: {} } as unknown as OrganizationRecord);
  const { enrichOrganization } = organizationService(records, null as never, null as never, changeMutex());
  return {
    set: (call, value) =>
      enrichOrganization(
        { organizationId: ledgerId, city: String(value) } as Parameters<typeof enrichOrganization>[0],
        call,
      ),
    read: async () => Number((await organizations.get(ledgerId))?.value.enriched.city),
  };
}

describe.each([
  ['preferring a key', preferring],
  ['setting the ARL gate', gating],
  ['enriching an organization', enriching],
])('%s', (_, open) => {
  test('a retry of a call that was carried out does not undo a later call, and is answered as the first run', async () => {
    const { set, read } = await open();
    const first = await set(runOf(1), 1);
    await set(runOf(2), 0);
    expect(await set(runOf(1), 1)).toEqual(first);
    expect(await read()).toBe(0);
  });

  test('a retry of a call that had not written yet is carried out', async () => {
    const { set, read } = await open();
    await set(runOf(2), 0);
    await set(runOf(1), 1);
    expect(await read()).toBe(1);
  });

  test('a retry is recognized behind thirty other calls', async () => {
    const { set, read } = await open();
    await set(runOf(1), 1);
    for (let seed = 2; seed < 32; seed += 1) await set(runOf(seed), 0);
    await set(runOf(1), 1);
    expect(await read()).toBe(0);
  });
});
