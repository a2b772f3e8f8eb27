import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { firstTrust } from '../../../../src/client/proofs/log-trust.ts';
import { signDigest } from '../../../../src/domain/keys/key-object.ts';
import { endorsementDigest } from '../../../../src/domain/log/endorsement.ts';
import { newKeyPair } from '../../../support/parties.ts';

const origin = 'ledger.example/v1';
const authority = newKeyPair();
const dates = { validFrom: '2026-11-01T00:00:00.000Z', validTo: null };
const authorityKey = {
  ...{ kid: 'svc:authority#key-1', algorithm: 'Ed25519', publicKey: authority.publicKey, fingerprint: '' },
  ...dates,
};

function endorsed(publicKey: string): string {
  const digest = endorsementDigest({ serviceName: origin, publicKey: Buffer.from(publicKey, 'base64') });
  return signDigest(digest, authority.privateKey);
}

const logKeyOf = (publicKey: string, sig: string) => ({
  ...{ publicKey, endorsement: { kid: authorityKey.kid, sig } },
  ...dates,
});

function trusted(...keys: ReturnType<typeof logKeyOf>[]): readonly string[] {
  const log = { origin, keys, previous: [] };
  return firstTrust({ keys: [authorityKey], phase: '2', log }, {}).logKeys;
}

const forged = () => randomBytes(64).toString('base64');

test('a log key of a form that no signature verifies under is not accepted, also if it is endorsed', () => {
  const identity = Buffer.from([1, ...Buffer.alloc(31)]).toString('base64');
  const [right, other] = [newKeyPair().publicKey, newKeyPair().publicKey];
  const keys = [logKeyOf(identity, endorsed(identity)), logKeyOf('no key', forged()), logKeyOf(other, forged())];
  expect(trusted(...keys, logKeyOf(right, endorsed(right)))).toEqual([right]);
});

test('a trust anchor with very many log keys that nobody has endorsed is read within seconds', () => {
  const [right, other] = [newKeyPair().publicKey, newKeyPair().publicKey];
  const keys = Array.from({ length: 3_000 }, () => logKeyOf(other, forged()));
  const begun = performance.now();
  expect(trusted(...keys, logKeyOf(right, endorsed(right)))).toEqual([right]);
  expect(performance.now() - begun).toBeLessThan(4_000);
});
