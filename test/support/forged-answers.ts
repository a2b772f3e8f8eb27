import { encodeBase64 } from '../../src/domain/keys/base64.ts';
import { events, ledgerId } from './export-of-vectors.ts';
import { identityPoint, signatureOfNonceZero } from './nonce-zero.ts';
import { type Lies, ledgerOrigin, logKey, masterOrigin, otherKey, SigningKey } from './proving-service.ts';

/** What a service can forge at the first look at it. */
export const forgeries: readonly (readonly [
  what: string,
  /** What is asked for: a newest checkpoint, the one of size 5 of the ledger, or the proof of the event with seq 4. */
  call: 'ledger' | 'master' | 'size' | 'proof',
  lie: Partial<Lies>,
  /** The reason of the refusal, or the code of the error. */
  refusal: string,
])[] = [
  [
    'a checkpoint of the ledger as one of the master',
    'master',
    { text: (text) => text.replace(masterOrigin, ledgerOrigin) },
    'wrong_origin',
  ],
  [
    'a checkpoint of the ledger, relabelled to the master by the key name',
    'master',
    {
      text: (text) => text.replace(masterOrigin, ledgerOrigin),
      note: (note) => note.replace(`— ${ledgerOrigin}`, `— ${masterOrigin}`),
    },
    'wrong_origin',
  ],
  [
    'an upper-case id in the note',
    'ledger',
    { text: (text) => text.replace(ledgerId, ledgerId.toUpperCase()) },
    'wrong_origin',
  ],
  [
    'an upper-case id in the answer',
    'ledger',
    { answer: (_, body) => ({ ...body, origin: String(body.origin).toUpperCase() }) },
    'wrong_origin',
  ],
  [
    'a key that the trust anchor does not list',
    'ledger',
    { signature: (text) => ({ publicKey: otherKey.publicKey, signature: otherKey.sign(Buffer.from(text)) }) },
    'unknown_log_key',
  ],
  [
    'a listed key that is the identity point, under which each message has a signature',
    'ledger',
    {
      keys: [logKey, new SigningKey(otherKey.seedHex, identityPoint.toString('base64'))],
      signature: () => ({ publicKey: identityPoint, signature: Buffer.concat([identityPoint, Buffer.alloc(32)]) }),
    },
    'unknown_log_key',
  ],
  ['a listed key that the authority has not endorsed', 'ledger', { endorsedBy: otherKey }, 'unknown_log_key'],
  [
    'a signature whose R is the identity point',
    'ledger',
    {
      signature: (text) => ({
        publicKey: logKey.publicKey,
        signature: signatureOfNonceZero(Buffer.from(logKey.seedHex, 'hex'), logKey.publicKey, Buffer.from(text)),
      }),
    },
    'invalid_signature',
  ],
  [
    'a signature of another text',
    'ledger',
    { signature: (text) => ({ publicKey: logKey.publicKey, signature: logKey.sign(Buffer.from(`${text} `)) }) },
    'invalid_signature',
  ],
  ['an extension line', 'ledger', { text: (text) => `${text}extension\n` }, 'malformed'],
  [
    'a size in the answer that the note does not have',
    'ledger',
    { answer: (_, body) => ({ ...body, size: 8 }) },
    'invalid_answer',
  ],
  [
    'a root in the answer that the note does not have',
    'ledger',
    { answer: (_, body) => ({ ...body, root_hash: encodeBase64(new Uint8Array(32)) }) },
    'invalid_answer',
  ],
  [
    'a checkpoint of another size than the one asked for',
    'size',
    {
      text: (text) => text.replace('\n5\n', '\n6\n'),
      answer: (_, body) => ({ ...body, size: 6 }),
    },
    'invalid_answer',
  ],
  ['a proof with a hash left over', 'proof', { hashes: (hashes) => [...hashes, new Uint8Array(32)] }, 'not_included'],
  ['a proof that lacks a hash', 'proof', { hashes: (hashes) => hashes.slice(1) }, 'not_included'],
  ['a proof for another index', 'proof', { file: (file) => file.replace('index 4', 'index 3') }, 'wrong_index'],
  ['a proof file with a line `extra`', 'proof', { file: (file) => file.replace('\n', '\nextra AAAA\n') }, 'malformed'],
  [
    'another hash of the event before',
    'proof',
    { answer: (call, body) => (call === 'inclusion' ? { ...body, prev_hash: '00'.repeat(32) } : body) },
    'wrong_event',
  ],
  [
    'no hash of the event before, so that the hash would not cover the content',
    'proof',
    { answer: (call, body) => (call === 'inclusion' ? { ...body, prev_hash: '' } : body) },
    'invalid_answer',
  ],
  [
    'another content hash of the event before in the master',
    'proof',
    {
      answer: (call, body) =>
        call === 'events'
          ? {
              ...body,
              events: [{ ...events[3], master_seq: (events[4]?.master_seq ?? 0) - 1, content_hash: '00'.repeat(32) }],
            }
          : body,
    },
    'wrong_event',
  ],
  ['a trust anchor without a log key', 'ledger', { keys: [] }, 'unknown_log_key'],
];
