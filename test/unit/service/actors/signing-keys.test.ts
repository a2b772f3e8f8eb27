import { expect, test } from 'vitest';
import type { ActorRecord } from '../../../../src/service/actors/actor-record.ts';
import { enrolKey, keyStatus, revokeKey } from '../../../../src/service/actors/signing-keys.ts';
import { bareActor } from '../../../support/actor-record.ts';
import { newKeyPair } from '../../../support/parties.ts';

const nowMs = 1_800_000_000_000;
const enrol = (actor: ActorRecord) => enrolKey(actor, newKeyPair().publicKey, nowMs);

function withKeys(count: number, of = bareActor('0193a000-0000-7000-8000-0000000000aa')): ActorRecord {
  return Array.from({ length: count }).reduce<ActorRecord>(enrol, of);
}

function withRevoked(count: number): ActorRecord {
  let actor = withKeys(0);
  for (let at = 0; at < count; at++) {
    actor = enrol(actor);
    actor = revokeKey(actor, actor.keys.at(-1)?.kid ?? '', null, nowMs);
  }
  return actor;
}

test('an actor has at most 200 active keys, and may enrol another one when one is revoked', () => {
  const full = withKeys(200);
  const refusal = expect.objectContaining({
    code: 'invalid_argument',
    message: expect.stringContaining('revoke one first'),
    details: { field: 'public_key', limit: 200 },
  });
  expect(() => enrol(full)).toThrow(refusal);
  const oneLess = revokeKey(full, full.keys[7]?.kid ?? '', null, nowMs);
  expect(enrol(oneLess).keys.at(-1)).toMatchObject({ kid: expect.stringMatching(/#key-201$/), preferred: false });
});

test('an actor whose keys are all revoked may enrol another one and sign with it', () => {
  const [key, ...others] = enrol(withRevoked(999)).keys.toReversed();
  expect(key).toMatchObject({ kid: expect.stringMatching(/#key-1000$/), preferred: true });
  expect(new Set(others.map(keyStatus))).toEqual(new Set(['REVOKED']));
});

test('an actor has at most 1,000 keys in all', () => {
  const usedUp = withRevoked(1_000);
  const refusal = { code: 'invalid_argument', details: { field: 'public_key', limit: 1_000 } };
  expect(() => enrol(usedUp)).toThrow(expect.objectContaining(refusal));
});
