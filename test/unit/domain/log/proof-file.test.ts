import { describe, expect, test } from 'vitest';
import { contentHash, eventHash } from '../../../../src/domain/event/content.ts';
import {
  type ExpectedLeaf,
  formatProofFile,
  parseProofFile,
  verifyProofFile,
} from '../../../../src/domain/log/proof-file.ts';
import { ProofRefused } from '../../../../src/domain/log/proof-refused.ts';
import { subtreeHash } from '../../../../src/domain/log/subtree-hash.ts';
import { leafHash } from '../../../../src/domain/log/tree.ts';
import { inclusionPath } from '../../../../src/domain/log/tree-proof.ts';
import { MemoryHashes } from '../../../support/log-hashes.ts';
import { vectorKey } from '../../../support/log-keys.ts';
import { hexOf, logVectors, ofHex, refusalReasons } from '../../../support/log-vectors.ts';
import { vectors } from '../../../support/vectors.ts';

const keys = [vectorKey];
const logs = [logVectors.ledger, ...logVectors.masters];
const proofs = logs.flatMap((log) =>
  [...log.proofs_at_own_place.entries(), ...log.proofs_in_whole.entries()].map(([index, file]) => ({
    log,
    index,
    file,
  })),
);

function refusal(file: string, expected: ExpectedLeaf): string {
  try {
    verifyProofFile(file, expected);
    return 'accepted';
  } catch (error) {
    if (error instanceof ProofRefused) return error.reason;
    throw error;
  }
}

test.each(proofs)(
  'the proof file of the vectors is made and verifies: $index in $log.origin',
  ({ log, index, file }) => {
    const records = log.leaf_data_hex.map(ofHex);
    const record = records[index] ?? Buffer.alloc(0);
    const { size } = verifyProofFile(file, { record, index, origin: log.origin, keys });
    const { hashAt } = new MemoryHashes(records.map(leafHash));
    const hashes = inclusionPath(index, size).map((subtree) => subtreeHash(subtree, hashAt));
    const checkpoint = log.checkpoints.find((one) => one.size === size)?.note ?? '';
    expect(formatProofFile({ index, hashes, checkpoint })).toBe(file);
    const parsed = parseProofFile(file);
    expect({ ...parsed, hashes: parsed?.hashes.map(hexOf) }).toEqual({ index, hashes: hashes.map(hexOf), checkpoint });
  },
);

test('the records of the vectors are the hashes of their events, each with a proof at its own place and in the whole', () => {
  expect(proofs).toHaveLength(2 * logs.reduce((sum, log) => sum + log.leaf_data_hex.length, 0));
  const { chain } = vectors;
  expect(logVectors.ledger.leaf_data_hex).toEqual(chain.map((event) => eventHash(event.prev_hash, event.content_hash)));
  for (const log of logVectors.masters) {
    const ofMaster = chain.filter(({ content }) => log.origin.endsWith(`/${content.master?.id}`));
    expect(log.leaf_data_hex).toEqual(ofMaster.map((event) => contentHash(event.canonical_content)));
  }
});

test.each(logVectors.refused)(
  'the proof file of the vectors is refused: $what',
  ({ what, origin, index, record_hex, proof }) => {
    expect(refusal(proof, { record: ofHex(record_hex), index, origin, keys })).toBe(refusalReasons[what]);
  },
);

const { ledger } = logVectors;
const good = ledger.proofs_in_whole[4] ?? '';
const expected = { record: ofHex(ledger.leaf_data_hex[4] ?? ''), index: 4, origin: ledger.origin, keys };
const [, , firstHash = ''] = good.split('\n');

describe('a proof file is refused', () => {
  test.each([
    ['that is empty', ''],
    ['of another version', good.replace('@v1', '@v2')],
    ['with extra data', good.replace('\nindex', '\nextra eA==\nindex')],
    ['without its first line', good.slice(good.indexOf('\n') + 1)],
    ['with a leading zero', good.replace('index 4', 'index 04')],
    ['with a negative index', good.replace('index 4', 'index -4')],
    ['without an index', good.replace('index 4\n', '')],
    ['with two spaces before its index', good.replace('index 4', 'index  4')],
    ['with an index of 2^53', good.replace('index 4', 'index 9007199254740992')],
    ['with a hash without padding', good.replace(firstHash, firstHash.slice(0, -1))],
    ['with a hash of 31 bytes', good.replace(firstHash, Buffer.alloc(31).toString('base64'))],
    ['with stray bits in a hash', good.replace('XOc=', 'XOd=')],
    ['with a space behind a hash', good.replace(firstHash, `${firstHash} `)],
    ['with carriage returns', good.replaceAll('\n', '\r\n')],
    ['with an empty line more before its checkpoint', good.replace('\n\n', '\n\n\n')],
    ['without a checkpoint', good.slice(0, good.indexOf('\n\n') + 2)],
    ['with more behind its checkpoint', `${good}\n`],
    ['with 54 hashes', good.replace(firstHash, Array(51).fill(firstHash).join('\n'))],
    ['that is too long', good + `— x AAECAwQ=\n`.repeat(10_000)],
  ])('%s', (_, file) => {
    expect(file).not.toBe(good);
    expect(refusal(good, expected)).toBe('accepted');
    expect(refusal(file, expected)).toBe('malformed');
  });

  test('whose hash was changed, or exchanged with the next one', () => {
    const lines = good.split('\n');
    const swapped = lines.with(2, lines[3] ?? '').with(3, firstHash);
    expect(refusal(swapped.join('\n'), expected)).toBe('not_included');
    const changed = good.replace(firstHash, Buffer.alloc(32).toString('base64'));
    expect(refusal(changed, expected)).toBe('not_included');
  });

  test('whose index was changed, where the old one is expected and where the new one is', () => {
    const changed = good.replace('index 4', 'index 5');
    expect(refusal(changed, expected)).toBe('wrong_index');
    expect(refusal(changed, { ...expected, index: 5 })).toBe('not_included');
  });
});

test('a proof file may hold the longest proof there is, of 53 hashes', () => {
  const hashes = Array.from({ length: 53 }, () => Buffer.alloc(32));
  const file = formatProofFile({ index: 2 ** 53 - 2, hashes, checkpoint: 'x' });
  expect(parseProofFile(file)?.hashes).toHaveLength(53);
  expect(inclusionPath(0, 2 ** 53 - 1)).toHaveLength(53);
});
