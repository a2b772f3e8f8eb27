import { generateKeyPairSync, sign } from 'node:crypto';
import { expect, test } from 'vitest';
import { encodeBase64 } from '../../../../src/domain/keys/base64.ts';
import { verifyForeignProof } from '../../../../src/domain/log/foreign-proof.ts';
import { formatVkey, keyIdOf, parseVkey } from '../../../../src/domain/log/log-key.ts';
import { formatNote } from '../../../../src/domain/log/note.ts';
import { ProofRefused } from '../../../../src/domain/log/proof-refused.ts';
import { leafHash, nodeHash } from '../../../../src/domain/log/tree.ts';
import { vectorKey } from '../../../support/log-keys.ts';
import { logVectors, ofHex } from '../../../support/log-vectors.ts';

/** A log of another service: its name is no origin of this project, and its records are texts. */
const name = 'Tiles of Sunlight';
const keyName = 'sunlight.example/2026h1';
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32);
const records = ['first', 'second', 'third'].map((text) => new TextEncoder().encode(text));
const [a, b, c] = records.map(leafHash) as [Uint8Array, Uint8Array, Uint8Array];
const root = nodeHash(nodeHash(a, b), c);

interface Changes {
  readonly text?: string;
  readonly signer?: string;
  readonly head?: string;
  readonly hashes?: readonly Uint8Array[];
}

/** The proof that `second` is in the log. */
function proofFile({ text, signer = keyName, head = 'index 1', hashes = [a, c] }: Changes = {}): string {
  const signed = text ?? `${name}\n3\n${encodeBase64(root)}\n`;
  const signature = sign(null, Buffer.from(signed), privateKey);
  const note = formatNote(signed, { keyName: signer, keyId: keyIdOf(signer, raw), signature });
  return ['c2sp.org/tlog-proof@v1', head, ...hashes.map(encodeBase64), '', note].join('\n');
}

interface Asked {
  readonly record?: Uint8Array | undefined;
  readonly index?: number | null;
  readonly of?: ReturnType<typeof keyedBy>;
}

function outcome(file: string, { record = records[1], index = 1, of = keyedBy(keyName) }: Asked = {}) {
  try {
    return verifyForeignProof(file, { record: record ?? new Uint8Array(), index, ...of });
  } catch (error) {
    if (error instanceof ProofRefused) return error.reason;
    throw error;
  }
}

function keyedBy(origin: string) {
  const parsed = parseVkey(formatVkey(origin, raw));
  if (parsed === null) throw new Error(origin);
  return parsed;
}

const text = (lines: string) => ({ text: `${keyName}\n${lines}` });
const honest = text(`3\n${encodeBase64(root)}\n`);

test('a proof of a log with any name and records of any length verifies', () => {
  expect(outcome(proofFile(honest))).toEqual({ origin: keyName, index: 1, size: 3 });
  expect(outcome(proofFile(honest), { index: null })).toEqual({ origin: keyName, index: 1, size: 3 });
});

test('a line `extra` and extension lines of the checkpoint are passed over', () => {
  expect(outcome(proofFile({ ...honest, head: 'extra AAEC\nindex 1' }))).toMatchObject({ index: 1 });
  expect(outcome(proofFile(text(`3\n${encodeBase64(root)}\nextension one\ntwo\n`)))).toMatchObject({ size: 3 });
});

test('signatures of witnesses are passed over', () => {
  const witness = `— witness.example ${encodeBase64(new Uint8Array(76).fill(7))}\n`;
  expect(outcome(proofFile(honest) + witness)).toMatchObject({ size: 3 });
});

test.each([
  ['a checkpoint whose first line is not the name of the vkey', proofFile(), 'wrong_origin'],
  ['a checkpoint under another key', proofFile({ ...honest, signer: 'other.example' }), 'unknown_log_key'],
  ['a changed checkpoint', proofFile(honest).replace('\n3\n', '\n4\n'), 'invalid_signature'],
  ['a hash left over', proofFile({ ...honest, hashes: [a, c, c] }), 'not_included'],
  ['a missing hash', proofFile({ ...honest, hashes: [a] }), 'not_included'],
  ['another index', proofFile({ ...honest, head: 'index 0' }), 'wrong_index'],
  ['two lines `extra`', proofFile({ ...honest, head: 'extra AA==\nextra AA==\nindex 1' }), 'malformed'],
  ['a size with a leading zero', proofFile(text(`03\n${encodeBase64(root)}\n`)), 'malformed'],
  ['a tree without leaves', proofFile(text(`0\n${encodeBase64(root)}\n`)), 'malformed'],
  ['a root of another length', proofFile(text('3\nAAAA\n')), 'malformed'],
  ['no checkpoint', 'c2sp.org/tlog-proof@v1\nindex 1\n\n', 'malformed'],
])('%s is refused', (_what, file, reason) => {
  expect(outcome(file)).toBe(reason);
});

test('another record is refused', () => {
  expect(outcome(proofFile(honest), { record: records[0] })).toBe('not_included');
  expect(outcome(proofFile(honest), { record: records[0], index: null })).toBe('not_included');
});

test('the proof files of the vectors verify by the vkeys of their logs', () => {
  for (const log of [logVectors.ledger, ...logVectors.masters]) {
    const of = parseVkey(log.vkey);
    if (of === null) throw new Error(log.vkey);
    for (const [index, file] of log.proofs_in_whole.entries()) {
      const record = ofHex(log.leaf_data_hex[index] ?? '');
      expect(outcome(file, { record, index, of })).toMatchObject({ index, size: log.leaf_data_hex.length });
    }
  }
});

test.each(logVectors.refused)(
  '$what is refused here, too, by the stricter rules for logs of this project',
  ({ proof, origin, index, record_hex }) => {
    const of = parseVkey(formatVkey(origin, vectorKey.publicKey));
    if (of === null) throw new Error(origin);
    expect(outcome(proof, { record: ofHex(record_hex), index, of })).toEqual(expect.any(String));
  },
);
