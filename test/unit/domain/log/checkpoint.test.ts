import { generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  type Checkpoint,
  type LogSigner,
  signCheckpoint,
  verifyCheckpoint,
} from '../../../../src/domain/log/checkpoint.ts';
import { keyIdOf } from '../../../../src/domain/log/log-key.ts';
import { formatNote } from '../../../../src/domain/log/note.ts';
import { ProofRefused } from '../../../../src/domain/log/proof-refused.ts';
import { knownKey, vectorKey, vectorSigner } from '../../../support/log-keys.ts';
import { hexOf, logVectors, ofHex } from '../../../support/log-vectors.ts';
import { signatureOfNonceZero } from '../../../support/nonce-zero.ts';

const { ledger, masters } = logVectors;
const { origin } = ledger;
const checkpoints = [ledger, ...masters].flatMap((log) =>
  log.checkpoints.map((one) => ({ ...one, origin: log.origin })),
);
const last = ledger.checkpoints.at(-1) ?? { size: 0, root_hex: '', note: '', text: '' };
const checkpoint: Checkpoint = { origin, size: last.size, root: ofHex(last.root_hex) };

/** A key that no vector knows, with a signature of the text by the name of the origin. */
function strangeKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  const signer: LogSigner = { ...vectorSigner, publicKey: raw, sign: (message) => sign(null, message, privateKey) };
  return { key: knownKey(raw.toString('base64')), signer };
}

function refusal(note: string, expected = origin, keys = [vectorKey]): string {
  try {
    verifyCheckpoint(note, expected, keys);
    return 'accepted';
  } catch (error) {
    if (error instanceof ProofRefused) return error.reason;
    throw error;
  }
}

/** A note of any text, signed by the key of the vectors under the ledger's origin. */
function signedText(text: string): string {
  const signature = vectorSigner.sign(Buffer.from(text));
  return formatNote(text, { keyName: origin, keyId: keyIdOf(origin, vectorKey.publicKey), signature });
}
const signatureLines = (note: string) => note.slice(note.lastIndexOf('\n\n') + 2);

test.each(checkpoints)('the checkpoint of the vectors is made and verifies: $text', (vector) => {
  const made = signCheckpoint({ origin: vector.origin, size: vector.size, root: ofHex(vector.root_hex) }, vectorSigner);
  expect(made).toBe(vector.note);
  const verified = verifyCheckpoint(vector.note, vector.origin, [vectorKey]);
  expect({ ...verified, root: hexOf(verified.root) }).toEqual({
    origin: vector.origin,
    size: vector.size,
    root: vector.root_hex,
  });
});

describe('a checkpoint is not signed', () => {
  test.each<[string, Partial<Checkpoint>]>([
    ['for a log of another service', { origin: origin.replace('ledger.example', 'other.example') }],
    ['for a service whose name only begins so', { origin: origin.replace('/v1/', '/v1/x/') }],
    ['for an origin with an id in upper case', { origin: origin.replace('a000', 'A000') }],
    ['for the name of the service alone', { origin: vectorSigner.serviceName }],
    ['for a reserved origin', { origin: `${vectorSigner.serviceName}/log` }],
    ['for an origin with a second line', { origin: `${origin}\nx` }],
    ['for the empty tree', { size: 0 }],
    ['for a negative size', { size: -1 }],
    ['for half a leaf', { size: 1.5 }],
    ['for a size of 2^53', { size: 2 ** 53 }],
    ['for a root of 31 bytes', { root: Buffer.alloc(31) }],
  ])('%s', (_, change) => {
    let isAsked = false;
    const sign = (message: Uint8Array) => {
      isAsked = true;
      return vectorSigner.sign(message);
    };
    expect(() => signCheckpoint({ ...checkpoint, ...change }, { ...vectorSigner, sign })).toThrow(RangeError);
    expect(isAsked).toBe(false);
    expect(signCheckpoint(checkpoint, { ...vectorSigner, sign })).toBe(last.note);
  });
});

describe('a text that the log key did sign is refused', () => {
  const root = last.text.split('\n')[2] ?? '';
  const refused: [string, string][] = [
    ['with an extension line', `${last.text}extension\n`],
    ['with an empty line at its end', `${last.text}\n`],
    ['without a root', `${origin}\n9\n`],
    ['with a size of 0', last.text.replace('\n9\n', '\n0\n')],
    ['with a leading zero', last.text.replace('\n9\n', '\n09\n')],
    ['with a sign', last.text.replace('\n9\n', '\n+9\n')],
    ['with a fraction', last.text.replace('\n9\n', '\n9.0\n')],
    ['with a size of 2^53', last.text.replace('\n9\n', '\n9007199254740992\n')],
    ['with a size of 20 digits', last.text.replace('\n9\n', '\n10000000000000000000\n')],
    ['with a root without padding', last.text.replace('=', '')],
    ['with a root of 31 bytes', last.text.replace(root, Buffer.alloc(31).toString('base64'))],
    ['with stray bits in its root', last.text.replace('Z8=\n', 'Z9=\n')],
    ['with a space behind its size', last.text.replace('\n9\n', '\n9 \n')],
  ];
  test.each(refused)('%s', (_, text) => {
    expect(text).not.toBe(last.text);
    expect(refusal(signedText(last.text))).toBe('accepted');
    expect(refusal(signedText(text))).toBe('malformed');
  });
});

test('a checkpoint is refused where another origin is expected, even under the name of the expected log', () => {
  const other = masters[0]?.origin ?? '';
  expect(refusal(last.note, other)).toBe('wrong_origin');
  const keyId = keyIdOf(other, vectorKey.publicKey);
  const signature = vectorSigner.sign(Buffer.from(last.text));
  const relabelled = formatNote(last.text, { keyName: other, keyId, signature });
  expect(refusal(relabelled, other)).toBe('wrong_origin');
  expect(refusal(relabelled)).toBe('unknown_log_key');
});

test('a checkpoint is refused whose origin is no origin of a log, even if the same is expected', () => {
  const upper = origin.replace('a000', 'A000');
  const text = last.text.replace(origin, upper);
  const signature = vectorSigner.sign(Buffer.from(text));
  const note = formatNote(text, { keyName: upper, keyId: keyIdOf(upper, vectorKey.publicKey), signature });
  expect(refusal(note, upper)).toBe('wrong_origin');
});

test('a note that is no signed note is refused as malformed', () => {
  for (const note of ['', last.text, `${last.note}\n`, last.note.replaceAll('\n', '\r\n')])
    expect(refusal(note)).toBe('malformed');
});

test('a checkpoint that no listed key signed is refused', () => {
  const { key, signer } = strangeKey();
  expect(refusal(signCheckpoint(checkpoint, signer))).toBe('unknown_log_key');
  expect(refusal(last.note, origin, [key])).toBe('unknown_log_key');
  expect(refusal(last.note, origin, [])).toBe('unknown_log_key');
});

test('each listed key may sign, and signatures of unknown keys are ignored', () => {
  const { key, signer } = strangeKey();
  const others = signatureLines(signCheckpoint(checkpoint, signer));
  const cosignature = `— witness.example AAECAwQ=\n— ${origin} AAECAwQ=\n`;
  for (const note of [
    last.note + others,
    last.note + cosignature,
    `${last.text}\n${others}${signatureLines(last.note)}`,
  ]) {
    expect(refusal(note)).toBe('accepted');
    expect(refusal(note, origin, [key, vectorKey])).toBe('accepted');
  }
  expect(refusal(signCheckpoint(checkpoint, signer), origin, [key, vectorKey])).toBe('accepted');
});

test('a wrong signature of a listed key refuses the note, also beside a good one and with any length', () => {
  const keyId = keyIdOf(origin, vectorKey.publicKey);
  const good = vectorSigner.sign(Buffer.from(last.text));
  const flipped = Buffer.from(good);
  flipped[40] = (flipped[40] ?? 0) ^ 1;
  for (const signature of [flipped, good.subarray(0, 63), Buffer.concat([good, Buffer.of(0)]), Buffer.alloc(64)]) {
    const wrong = formatNote(last.text, { keyName: origin, keyId, signature });
    expect(refusal(wrong)).toBe('invalid_signature');
    expect(refusal(last.note + signatureLines(wrong))).toBe('invalid_signature');
    expect(refusal(wrong + signatureLines(last.note))).toBe('invalid_signature');
  }
});

test('a checkpoint does not verify with any changed byte of its text', () => {
  const bytes = Buffer.from(last.note);
  const accepted: number[] = [];
  for (let at = 0; at < Buffer.byteLength(last.text); at += 1) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    if (refusal(changed.toString('utf8')) === 'accepted') accepted.push(at);
  }
  expect(accepted).toEqual([]);
});

test('a signature whose R is the identity point is refused', () => {
  const seed = ofHex(logVectors.log_key.seed_hex);
  const signature = signatureOfNonceZero(seed, Buffer.from(vectorKey.publicKey), Buffer.from(last.text));
  const keyId = keyIdOf(origin, vectorKey.publicKey);
  expect(refusal(formatNote(last.text, { keyName: origin, keyId, signature }))).toBe('invalid_signature');
});

test('of two listed keys with the same key id either may sign', () => {
  const wrong = { publicKey: vectorKey.publicKey, verify: () => false };
  expect(refusal(last.note, origin, [wrong, vectorKey])).toBe('accepted');
  expect(refusal(last.note, origin, [vectorKey, wrong])).toBe('accepted');
  expect(refusal(last.note, origin, [wrong])).toBe('invalid_signature');
});
