import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { signDigest } from '../../../src/domain/keys/key-object.ts';
import { sigDigest } from '../../../src/domain/keys/signature.ts';
import type { Identities } from '../../../src/service/actors/identities.ts';
import { checkCallSignature } from '../../../src/service/actors/signing.ts';
import { enrolKey, preferKey } from '../../../src/service/actors/signing-keys.ts';
import type { Call, CallSignature } from '../../../src/service/calls/call.ts';
import { bareActor } from '../../support/actor-record.ts';
import { append, createMaster, openLedger, signature, supplier } from '../../support/commands.ts';
import { identitiesIn } from '../../support/identities.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { codeOf, rig } from '../../support/world.ts';

/** Two nodes on one store; neither hears of the other's changes but by reading. */
const actorId = '0193a000-0000-7000-8000-0000000000aa';
const ledgerId = '0193a000-0000-7000-8000-0000000000bb';
const nowMs = 1_800_000_000_000;

let here: Identities;
let there: Identities;
let first: KeyObject;
let second: KeyObject;

function publicText(key: KeyObject): string {
  return Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64');
}

function keyPair() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return { publicKey: publicText(publicKey), privateKey };
}

beforeEach(async () => {
  const store = new MemoryRecordStore();
  [here, there] = [identitiesIn(store, () => nowMs), identitiesIn(store, () => nowMs)];
  const [one, two] = [keyPair(), keyPair()];
  [first, second] = [one.privateKey, two.privateKey];
  await there.create(enrolKey(bareActor(actorId), one.publicKey, nowMs));
  // From now on this node would answer from memory for a second.
  expect((await here.recent(actorId))?.keys).toHaveLength(1);
  await there.update(actorId, (actor) => enrolKey(actor, two.publicKey, nowMs), null);
  expect((await here.recent(actorId))?.keys).toHaveLength(1);
});

function check(key: KeyObject, keyId: string | null) {
  const text = signDigest(sigDigest('NOTE', ledgerId, '{}'), key);
  const sent: CallSignature = { keyId, signature: text };
  const caller = { actorId, mustSign: false };
  const call = { caller, signature: sent, markVerified: () => {} } as Partial<Call> as Call;
  return checkCallSignature(here, call, 'if_keyed', { eventType: 'NOTE', ledgerId, forms: ['{}'] });
}

describe('a key that was enrolled on another node a moment ago', () => {
  test('signs here at once', async () => {
    expect(await check(second, `svc:actor:${actorId}#key-2`)).toMatchObject({ keyId: `svc:actor:${actorId}#key-2` });
  });

  test('is the preferred one here as soon as it was preferred there', async () => {
    await there.update(actorId, (actor) => preferKey(actor, `svc:actor:${actorId}#key-2`), null);
    expect(await check(second, null)).toMatchObject({ keyId: `svc:actor:${actorId}#key-2` });
    expect(await codeOf(check(first, null))).toBe('invalid_signature');
  });

  test('is found for checking an event that was signed with it', async () => {
    expect(await here.key(actorId, `svc:actor:${actorId}#key-2`)).toMatchObject({ publicKey: expect.any(String) });
  });

  test('one that nobody enrolled stays unknown, and a wrong signature stays wrong', async () => {
    expect(await codeOf(check(second, `svc:actor:${actorId}#key-3`))).toBe('unknown_signing_key');
    expect(await codeOf(check(first, `svc:actor:${actorId}#key-2`))).toBe('invalid_signature');
    expect(await here.key(actorId, `svc:actor:${actorId}#key-3`)).toBeUndefined();
  });
});

test('a ledger whose memory of an actor lacks the key that is named asks the store', async () => {
  const { newActor, keys } = rig();
  const actor = newActor();
  await Promise.all([actor.submit(openLedger()), actor.submit(createMaster({ signatureRule: 'optional' }))]);
  const [old, fresh] = [`svc:actor:${supplier}#key-1`, `svc:actor:${supplier}#key-2`];
  keys.enrol(supplier, old);
  keys.cached.set(supplier, keys.stored.get(supplier) ?? new Map());
  keys.enrol(supplier, fresh);
  const reads = keys.reads;
  await actor.submit(append({ signature: signature(old), signatureRule: 'if_keyed' }));
  expect(keys.reads).toBe(reads);
  const { event } = await actor.submit(append({ signature: signature(fresh), signatureRule: 'if_keyed' }));
  expect(event.signingKeyId).toBe(fresh);
  const unknown = append({ signature: signature(`svc:actor:${supplier}#key-3`), signatureRule: 'if_keyed' });
  expect(await codeOf(actor.submit(unknown))).toBe('unknown_signing_key');
});
