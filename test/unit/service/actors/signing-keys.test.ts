import { expect, test } from 'vitest';
import { actorKid } from '../../../../src/domain/keys/signature.ts';
import type { ActorRecord, SigningKeyRecord } from '../../../../src/service/actors/actor-record.ts';
import { enrolKey, keyStatus, revokeKey } from '../../../../src/service/actors/signing-keys.ts';
import { bareActor } from '../../../support/actor-record.ts';
import { newKeyPair } from '../../../support/parties.ts';

const nowMs = 1_800_000_000_000;
const enrol = (actor: ActorRecord) => enrolKey(actor, newKeyPair().publicKey, nowMs);

const bare = bareActor('0193a000-0000-7000-8000-0000000000aa');

/** Copies of the keys that the rules make: to enrol so many takes seconds, since each key is checked. */
function withKeys(count: number, first: SigningKeyRecord | undefined): ActorRecord {
  if (first === undefined) throw new Error('there is no first key');
  const copyOf = (at: number): SigningKeyRecord => ({
    ...first,
    kid: actorKid(bare.actorId, at + 1),
    publicKey: newKeyPair().publicKey,
    preferred: false,
  });
  return { ...bare, keys: Array.from({ length: count }, (_, at) => (at === 0 ? first : copyOf(at))) };
}

const active = (count: number) => withKeys(count, enrol(bare).keys[0]);

function revoked(count: number): ActorRecord {
  const one = enrol(bare);
  return withKeys(count, revokeKey(one, one.keys[0]?.kid ?? '', null, nowMs).keys[0]);
}

test('an actor has at most 200 active keys, and may enrol another one when one is revoked', () => {
  const full = active(200);
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
  const [key, ...others] = enrol(revoked(999)).keys.toReversed();
  expect(key).toMatchObject({ kid: expect.stringMatching(/#key-1000$/), preferred: true });
  expect(new Set(others.map(keyStatus))).toEqual(new Set(['REVOKED']));
});

test('an actor has at most 1,000 keys in all', () => {
  const usedUp = revoked(1_000);
  const refusal = { code: 'invalid_argument', details: { field: 'public_key', limit: 1_000 } };
  expect(() => enrol(usedUp)).toThrow(expect.objectContaining(refusal));
});
