import { logVectors } from '../../../support/log-vectors.ts';

type BrokenLine = readonly [
  /** A part of one line, which the file has once. */
  line: string,
  broken: string,
  /** The beginning of the titles of tests that fail, by the name of their file without `.test.ts`. */
  fails: { readonly [testFile: string]: readonly string[] },
];

const vectorProofs = [
  'inclusion > the proof of the vectors is made',
  'consistency > the proof of the vectors is made',
  'proofs in a tree of',
];

/** By the file below src/domain. */
const byFile: Readonly<Record<string, readonly BrokenLine[]>> = {
  'log/tree.ts': [
    ['input.set(record, 1);', 'input.set(record, 0);', { tree: ['the hash of a leaf is'] }],
    [
      'nodeInput[0] = 1;',
      'nodeInput[0] = 0;',
      {
        tree: ['the hash of a node is', 'the small tree of the vectors', 'the large tree of the vectors'],
        'compact-range': ['the compact range of size'],
      },
    ],
    ['!isHash(left) || !isHash(right)', '!isHash(left)', { tree: ['a node is not made of a hash of another length'] }],
    [
      "= sha256('');",
      "= sha256('0');",
      {
        tree: ['the root of the empty tree is', 'roots of 0 to 300 leaves'],
        'compact-range': ['appended leaf by leaf'],
      },
    ],
    ['while (power * 2 <= size)', 'while (power * 2 < size)', { tree: ['a tree is made of one perfect subtree'] }],
    ['one.length === other.length && ', '', { tree: ['two hashes are the same only if'] }],
  ],
  'log/tree-proof.ts': [
    [
      '? [...pathFrom({ from, to: middle }, end, leaf), { from: middle, to }]',
      '? [{ from: middle, to }, ...pathFrom({ from, to: middle }, end, leaf)]',
      {
        'tree-proof': [
          ...vectorProofs,
          'inclusion > the path of every leaf',
          'consistency > the path between all sizes',
        ],
        'proof-file': ['the proof file of the vectors is made'],
      },
    ],
    [
      'return place.isAtTop && isSameHash(hash, root);',
      'return isSameHash(hash, root);',
      { 'tree-proof': ['inclusion > a proof that ends below the root'] },
    ],
    [
      'hash = place.siblingIsLeft ? nodeHash(sibling, hash) : nodeHash(hash, sibling);',
      'hash = nodeHash(hash, sibling);',
      { 'tree-proof': ['inclusion > every proof verifies', 'inclusion > the proof of the vectors'] },
    ],
    [
      'return place.isAtTop && isSameHash(hash, root);',
      'return place.isAtTop;',
      { 'tree-proof': ['inclusion > every proof verifies', 'inclusion > a proof does not verify for another index'] },
    ],
    ['|| index >= size || !', '|| !', { 'tree-proof': ['inclusion > no leaf'] }],
    [
      'from === 0 ? [] : [{ from, to }]);',
      '[{ from, to }]);',
      { 'tree-proof': ['consistency > the path between all sizes'] },
    ],
    [
      '  place.goUpWhileRight();',
      '',
      { 'tree-proof': ['consistency > the proof of the ledger', 'consistency > every proof of consistency'] },
    ],
    [
      'return place.isAtTop && isSameHash(oldHash, oldRoot) &&',
      'return place.isAtTop &&',
      { 'tree-proof': ['consistency > a proof of consistency does not verify for another'] },
    ],
    [
      'return place.isAtTop && isSameHash(oldHash, oldRoot) &&',
      'return isSameHash(oldHash, oldRoot) &&',
      { 'tree-proof': ['consistency > a proof of consistency that ends below'] },
    ],
    [
      'oldSize < 1 || oldSize > newSize) return false;',
      'oldSize > newSize) return false;',
      { 'tree-proof': ['consistency > no tree of'] },
    ],
  ],
  'log/compact-range.ts': [
    [
      'hash = nodeHash(this.#at(this.#count), hash);',
      'hash = nodeHash(hash, this.#at(this.#count));',
      { 'compact-range': ['the compact range of size', 'a compact range that was made from its hashes'] },
    ],
    ['this.#at(at).slice()', 'this.#at(at)', { 'compact-range': ['an append changes neither'] }],
    ['hashes.length !== onesIn(size) || ', '', { 'compact-range': ['a compact range is not made with'] }],
    ['if (!isHash(leafHash)) throw', 'if (false) throw', { 'compact-range': ['a compact range takes no hash of'] }],
  ],
  'log/subtree-hash.ts': [
    ['hashAt(level, from + at)', 'hashAt(level, from)', { 'tree-proof': ['inclusion > the hash of every subtree'] }],
    ['if (hashes.length !== TILE_HASHES)', 'if (hashes.length > TILE_HASHES)', { tiles: ['a tile of'] }],
  ],
  'log/tiles.ts': [
    [
      'leaves >= TILE_HASHES;',
      'leaves > TILE_HASHES;',
      {
        tiles: [
          'the hashes that are needed > for the root of 70,000',
          'the hashes that are needed > for a full tile',
          'the hashes that are needed > of a tree of 2^40',
        ],
      },
    ],
    [
      'return Math.floor(size / TILE_HASHES ** level);',
      'return Math.ceil(size / TILE_HASHES ** level);',
      { tiles: ['the hashes of the level are'] },
    ],
    [
      'level === 0 && index === levelSize(1, size)',
      'level === 0',
      {
        tiles: [
          'the hashes that are needed > for an old tree',
          'the hashes that are needed > for an inclusion proof in ten million',
        ],
      },
    ],
    [
      'Math.max(to - index * TILE_HASHES, tiles.get(key)?.hashes ?? 0)',
      'to - index * TILE_HASHES',
      { tiles: ['the hashes that are needed > are all that subtreeHash reads'] },
    ],
  ],
  'log/origin.ts': [
    [
      "const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?';",
      "const LABEL = '[a-z0-9-]+';",
      { origin: ['no service has the name'] },
    ],
    [')*(?::[1-9]', ')?(?::[1-9]', { origin: ['a service may have the name'] }],
    [' || !isUuid(id)) return null;', ') return null;', { origin: ['no log has the origin'] }],
    ['if (!isUuid(id)) throw', 'if (false) throw', { origin: ['an origin is not made of an id'] }],
    ["master: 'masters'", "master: 'master'", { origin: ['the origins of the vectors'] }],
  ],
  'log/log-key.ts': [
    [
      'typed[0] = ED25519;',
      'typed[0] = 0;',
      { 'log-key': ['the vkey of the vectors'], checkpoint: ['the checkpoint of the vectors is made'] },
    ],
    ['  input.set(name);', '', { 'log-key': ['the id of a key depends'] }],
    ['keyIdOf(origin, publicKey) === keyId ?', 'true ?', { 'log-key': ['a vkey is refused with'] }],
  ],
  'keys/public-key.ts': [
    [
      'if (!isPrimeOrder(key)) throw',
      'if (false) throw',
      { 'log-key': ['a log key > is judged by', 'a log key > in a vkey is judged'] },
    ],
  ],
  'keys/base64.ts': [
    [
      'bytes.length === lengthBytes && platformCrypto.toBase64(bytes) === text ?',
      'bytes.length === lengthBytes ?',
      { 'log-key': ['a log key > is 32 bytes in strict base64'] },
    ],
  ],
  'log/note.ts': [
    ['end < text.length', 'true', { note: ['whether bytes follow a note is told'] }],
    [
      ' && parseNote(text.slice(0, end)) !== null;',
      ';',
      { note: ['a text that is no note has nothing behind a note'] },
    ],
    ["note.lastIndexOf('\\n\\n')", "note.indexOf('\\n\\n')", { note: ['the example of c2sp.org/signed-note'] }],
    ['  blob.set(signature, KEY_ID_BYTES);', '', { note: ['a note of the vectors is read and written'] }],
    ['blob.length <= KEY_ID_BYTES', 'blob.length < KEY_ID_BYTES', { note: ['a note is refused'] }],
    ['if (lines.length > NOTE_SIGNATURES_MAX) return null;', '', { note: ['a note has at most 100 signatures'] }],
    ['note.length > NOTE_CHARS_MAX || ', '', { note: ['a note has room for 16 signatures'] }],
    [
      '(encoded.length / 4) * 3 - padding',
      '(encoded.length / 4) * 3',
      { note: ['a note keeps the signatures of all keys'] },
    ],
  ],
  'log/checkpoint.ts': [
    [
      'if (checkpoint.origin !== origin)',
      'if (false)',
      { checkpoint: ['a checkpoint is refused where another origin'] },
    ],
    [
      'if (parseOrigin(origin) === null)',
      'if (false)',
      {
        checkpoint: ['a checkpoint is refused whose origin is no origin'],
        'proof-file': ['the proof file of the vectors is refused'],
      },
    ],
    [
      "new ProofRefused('malformed', ",
      "new ProofRefused('wrong_origin', ",
      { checkpoint: ['a note that is no signed note'] },
    ],
    ['if (!isSigned)', 'if (false)', { checkpoint: ['a checkpoint that no listed key signed'] }],
    [
      'if (known.length === 0) continue;',
      "if (known.length === 0) throw new ProofRefused('unknown_log_key', '');",
      { checkpoint: ['each listed key may sign'], 'foreign-proof': ['signatures of witnesses'] },
    ],
    [
      'signature.length !== SIGNATURE_BYTES || !known.some(({ key }) => key.verify(message, signature))',
      'signature.length !== SIGNATURE_BYTES',
      {
        checkpoint: [
          'a wrong signature of a listed key',
          'a checkpoint does not verify with any changed byte',
          'a signature whose R is the identity point',
          'of two listed keys with the same key id',
        ],
      },
    ],
    [
      'if (parseOrigin(origin)?.serviceName !== serviceName) throw',
      'if (false) throw',
      { checkpoint: ['a checkpoint is not signed'] },
    ],
    ['([^\\n]+)\\n$/;', '([^\\n]+)\\n/;', { checkpoint: ['a text that the log key did sign is refused'] }],
  ],
  'log/proof-file.ts': [
    [
      'if (index !== null && proven !== index)',
      'if (false)',
      {
        'proof-file': ['a proof file is refused > whose index was changed'],
        'foreign-proof': ['another index is refused'],
      },
    ],
    [
      'if (!isIncluded(',
      'if (false && !isIncluded(',
      {
        'proof-file': ['a proof file is refused > whose hash was changed'],
        'foreign-proof': ['a hash left over', 'a missing hash', 'another record is refused'],
      },
    ],
    ['leafHash: leafHash(record),', 'leafHash: record,', { 'foreign-proof': ['a proof of a log with any name'] }],
    [
      ' || lines.length > HASHES_MAX) return null;',
      ') return null;',
      { 'proof-file': ['a proof file is refused > with 54 hashes'] },
    ],
    ['format !== FORMAT || ', '', { 'proof-file': ['a proof file is refused > '] }],
    ['const HASHES_MAX = 53;', 'const HASHES_MAX = 52;', { 'proof-file': ['a proof file may hold the longest proof'] }],
  ],
  'log/foreign-proof.ts': [
    ["file.replace(EXTRA_LINE, '$1')", 'file', { 'foreign-proof': ['a line `extra` and extension lines'] }],
    ['(?:[^\\n]+\\n)*$/;', '$/;', { 'foreign-proof': ['a line `extra` and extension lines'] }],
    ['if (name !== origin)', 'if (false)', { 'foreign-proof': ['a checkpoint whose first line'] }],
    [
      '  checkSignatures(note, origin, [key]);',
      '',
      { 'foreign-proof': ['a checkpoint under another key', 'a changed checkpoint'] },
    ],
    [
      'if (root === null || !Number.isSafeInteger(size))',
      'if (false)',
      { 'foreign-proof': ['a size with a leading zero', 'a tree without leaves', 'a root of another length'] },
    ],
    [
      'if (proof === null || note === null) throw',
      'if (false) throw',
      { 'foreign-proof': ['two lines `extra`', 'no checkpoint'] },
    ],
    ['keys: [key] }', 'keys: [] }', { 'foreign-proof': ['the proof files of the vectors verify'] }],
    [
      'return OWN_ORIGIN.test(leaf.origin) ?',
      'return false ?',
      { 'foreign-proof': ['an upper-case id in the origin', 'an extension line'] },
    ],
    [
      'return OWN_ORIGIN.test(leaf.origin) ? verifyOwnProof(file, leaf) : verifyAnyProof(file, leaf);',
      'return { origin: leaf.origin, index: 0, size: 1 };',
      // Vitest shortens what it puts into a title to 40 characters.
      { 'foreign-proof': logVectors.refused.map(({ what }) => `${what} is refused here`.slice(0, 39)) },
    ],
  ],
  'event/content.ts': [
    ["'svc-event-v1\\0'", "'svc-event-v2\\0'", { 'proof-file': ['the records of the vectors are'] }],
  ],
  'log/endorsement.ts': [
    ['`svc-log-key-v1', '`svc-log-key-v2', { endorsement: ['the endorsement of the vectors'] }],
    [
      'bytes !== null && verify(endorsementDigest(endorsement), bytes);',
      'bytes !== null;',
      { endorsement: ['an endorsement is of one service'] },
    ],
    [
      '&& bytes !== null && verify',
      '&& verify',
      { endorsement: ['an endorsement with a key or a signature of another form'] },
    ],
    [
      'if (publicKey.length !== PUBLIC_KEY_BYTES)',
      'if (false)',
      { endorsement: ['there is no digest for another form'] },
    ],
  ],
};

/**
 * For each test of this folder a line of code that makes it fail when it is broken. broken-lines.nightly.ts breaks them
 * one at a time.
 */
export const brokenLines = Object.entries(byFile).flatMap(([file, lines]) =>
  lines.map(([line, broken, fails]) => ({ file, line, broken, fails })),
);
