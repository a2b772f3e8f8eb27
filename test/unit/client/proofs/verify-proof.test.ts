import { expect, test } from 'vitest';
import { verifyCheckpoint, verifyInclusion } from '../../../../src/client/index.ts';
import { formatVkey } from '../../../../src/domain/log/log-key.ts';
import { vectorKey } from '../../../support/log-keys.ts';
import { logVectors, ofHex } from '../../../support/log-vectors.ts';

const { origin, checkpoints } = logVectors.ledger;
const [first] = checkpoints;
const service = 'ledger.example/v1';
const vkeyOf = (name: string) => formatVkey(name, vectorKey.publicKey);

test('a vkey that names the service, or a log of it, is a key of its checkpoints', () => {
  for (const name of [service, origin, `${service}/masters/0193a000-0000-7000-8000-0000000000aa`])
    expect(verifyCheckpoint(first?.note ?? '', { origin, keys: [vkeyOf(name)] }).size).toBe(first?.size);
});

test('a vkey that names another service is refused, beside whatever other keys', () => {
  const named = `other.example/v9/ledgers/0193a000-0000-7000-8000-000000000001`;
  for (const name of ['other.example/v1', named])
    for (const keys of [[vkeyOf(name)], [vkeyOf(origin), vkeyOf(name)]]) {
      expect(() => verifyCheckpoint(first?.note ?? '', { origin, keys })).toThrow(
        expect.objectContaining({ reason: 'wrong_origin' }),
      );
      const record = { record: ofHex('00'.repeat(32)), index: 0 };
      expect(() => verifyInclusion('', { ...record, origin, keys })).toThrow(
        expect.objectContaining({ reason: 'wrong_origin' }),
      );
    }
});
