import { logVectors } from '../../../support/log-vectors.ts';

/**
 * For each test of this folder a line of code that makes it fail when it is broken. broken-lines.nightly.ts breaks them
 * one at a time.
 */
export interface BrokenLine {
  /** Below src/domain. */
  readonly file: string;
  /** A part of one line, which the file has once. */
  readonly line: string;
  readonly broken: string;
  /** The beginning of the titles of tests that fail, by the name of their file without `.test.ts`. */
  readonly fails: { readonly [testFile: string]: readonly string[] };
}

const vectorProofs = [
  'inclusion > the proof of the vectors is made',
  'consistency > the proof of the vectors is made',
  'proofs in a tree of',
];

export const brokenLines: readonly BrokenLine[] = [
  {
    file: 'log/tree.ts',
    line: 'input.set(record, 1);',
    broken: 'input.set(record, 0);',
    fails: { tree: ['the hash of a leaf is'] },
  },
  {
    file: 'log/tree.ts',
    line: 'nodeInput[0] = 1;',
    broken: 'nodeInput[0] = 0;',
    fails: {
      tree: ['the hash of a node is', 'the small tree of the vectors', 'the large tree of the vectors'],
      'compact-range': ['the compact range of size'],
    },
  },
  {
    file: 'log/tree.ts',
    line: '!isHash(left) || !isHash(right)',
    broken: '!isHash(left)',
    fails: { tree: ['a node is not made of a hash of another length'] },
  },
  {
    file: 'log/tree.ts',
    line: "= sha256('');",
    broken: "= sha256('0');",
    fails: {
      tree: ['the root of the empty tree is', 'roots of 0 to 300 leaves'],
      'compact-range': ['appended leaf by leaf'],
    },
  },
  {
    file: 'log/tree.ts',
    line: 'while (power * 2 <= size)',
    broken: 'while (power * 2 < size)',
    fails: { tree: ['a tree is made of one perfect subtree'] },
  },
  {
    file: 'log/tree.ts',
    line: 'one.length === other.length && ',
    broken: '',
    fails: { tree: ['two hashes are the same only if'] },
  },
  {
    file: 'log/tree-proof.ts',
    line: '? [...pathFrom({ from, to: middle }, end, leaf), { from: middle, to }]',
    broken: '? [{ from: middle, to }, ...pathFrom({ from, to: middle }, end, leaf)]',
    fails: {
      'tree-proof': [...vectorProofs, 'inclusion > the path of every leaf', 'consistency > the path between all sizes'],
      'proof-file': ['the proof file of the vectors is made'],
    },
  },
  {
    file: 'log/tree-proof.ts',
    line: 'return place.isAtTop && isSameHash(hash, root);',
    broken: 'return isSameHash(hash, root);',
    fails: { 'tree-proof': ['inclusion > a proof that ends below the root'] },
  },
  {
    file: 'log/tree-proof.ts',
    line: 'hash = place.siblingIsLeft ? nodeHash(sibling, hash) : nodeHash(hash, sibling);',
    broken: 'hash = nodeHash(hash, sibling);',
    fails: { 'tree-proof': ['inclusion > every proof verifies', 'inclusion > the proof of the vectors'] },
  },
  {
    file: 'log/tree-proof.ts',
    line: 'return place.isAtTop && isSameHash(hash, root);',
    broken: 'return place.isAtTop;',
    fails: {
      'tree-proof': ['inclusion > every proof verifies', 'inclusion > a proof does not verify for another index'],
    },
  },
  {
    file: 'log/tree-proof.ts',
    line: '|| index >= size || !',
    broken: '|| !',
    fails: { 'tree-proof': ['inclusion > no leaf'] },
  },
  {
    file: 'log/tree-proof.ts',
    line: 'from === 0 ? [] : [{ from, to }]);',
    broken: '[{ from, to }]);',
    fails: { 'tree-proof': ['consistency > the path between all sizes'] },
  },
  {
    file: 'log/tree-proof.ts',
    line: '  place.goUpWhileRight();',
    broken: '',
    fails: { 'tree-proof': ['consistency > the proof of the ledger', 'consistency > every proof of consistency'] },
  },
  {
    file: 'log/tree-proof.ts',
    line: 'return place.isAtTop && isSameHash(oldHash, oldRoot) &&',
    broken: 'return place.isAtTop &&',
    fails: { 'tree-proof': ['consistency > a proof of consistency does not verify for another'] },
  },
  {
    file: 'log/tree-proof.ts',
    line: 'return place.isAtTop && isSameHash(oldHash, oldRoot) &&',
    broken: 'return isSameHash(oldHash, oldRoot) &&',
    fails: { 'tree-proof': ['consistency > a proof of consistency that ends below'] },
  },
  {
    file: 'log/tree-proof.ts',
    line: 'oldSize < 1 || oldSize > newSize) return false;',
    broken: 'oldSize > newSize) return false;',
    fails: { 'tree-proof': ['consistency > no tree of'] },
  },
  {
    file: 'log/compact-range.ts',
    line: 'hash = nodeHash(this.#at(this.#count), hash);',
    broken: 'hash = nodeHash(hash, this.#at(this.#count));',
    fails: { 'compact-range': ['the compact range of size', 'a compact range that was made from its hashes'] },
  },
  {
    file: 'log/compact-range.ts',
    line: 'this.#at(at).slice()',
    broken: 'this.#at(at)',
    fails: { 'compact-range': ['an append changes neither'] },
  },
  {
    file: 'log/compact-range.ts',
    line: 'hashes.length !== onesIn(size) || ',
    broken: '',
    fails: { 'compact-range': ['a compact range is not made with'] },
  },
  {
    file: 'log/compact-range.ts',
    line: 'if (!isHash(leafHash)) throw',
    broken: 'if (false) throw',
    fails: { 'compact-range': ['a compact range takes no hash of'] },
  },
  {
    file: 'log/subtree-hash.ts',
    line: 'hashAt(level, from + at)',
    broken: 'hashAt(level, from)',
    fails: { 'tree-proof': ['inclusion > the hash of every subtree'] },
  },
  {
    file: 'log/tiles.ts',
    line: 'leaves >= TILE_HASHES;',
    broken: 'leaves > TILE_HASHES;',
    fails: {
      tiles: [
        'the hashes that are needed > for the root of 70,000',
        'the hashes that are needed > for a full tile',
        'the hashes that are needed > of a tree of 2^40',
      ],
    },
  },
  {
    file: 'log/subtree-hash.ts',
    line: 'if (hashes.length !== TILE_HASHES)',
    broken: 'if (hashes.length > TILE_HASHES)',
    fails: { tiles: ['a tile of'] },
  },
  {
    file: 'log/tiles.ts',
    line: 'return Math.floor(size / TILE_HASHES ** level);',
    broken: 'return Math.ceil(size / TILE_HASHES ** level);',
    fails: { tiles: ['the hashes of the level are'] },
  },
  {
    file: 'log/tiles.ts',
    line: 'level === 0 && index === levelSize(1, size)',
    broken: 'level === 0',
    fails: {
      tiles: [
        'the hashes that are needed > for an old tree',
        'the hashes that are needed > for an inclusion proof in ten million',
      ],
    },
  },
  {
    file: 'log/tiles.ts',
    line: 'Math.max(to - index * TILE_HASHES, tiles.get(key)?.hashes ?? 0)',
    broken: 'to - index * TILE_HASHES',
    fails: { tiles: ['the hashes that are needed > are all that subtreeHash reads'] },
  },
  {
    file: 'log/origin.ts',
    line: "const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?';",
    broken: "const LABEL = '[a-z0-9-]+';",
    fails: { origin: ['no service has the name'] },
  },
  {
    file: 'log/origin.ts',
    line: ')*(?::[1-9]',
    broken: ')?(?::[1-9]',
    fails: { origin: ['a service may have the name'] },
  },
  {
    file: 'log/origin.ts',
    line: ' || !isUuid(id)) return null;',
    broken: ') return null;',
    fails: { origin: ['no log has the origin'] },
  },
  {
    file: 'log/origin.ts',
    line: 'if (!isUuid(id)) throw',
    broken: 'if (false) throw',
    fails: { origin: ['an origin is not made of an id'] },
  },
  {
    file: 'log/origin.ts',
    line: "master: 'masters'",
    broken: "master: 'master'",
    fails: { origin: ['the origins of the vectors'] },
  },
  {
    file: 'log/log-key.ts',
    line: 'typed[0] = ED25519;',
    broken: 'typed[0] = 0;',
    fails: { 'log-key': ['the vkey of the vectors'], checkpoint: ['the checkpoint of the vectors is made'] },
  },
  {
    file: 'log/log-key.ts',
    line: '  input.set(name);',
    broken: '',
    fails: { 'log-key': ['the id of a key depends'] },
  },
  {
    file: 'keys/public-key.ts',
    line: 'if (!isPrimeOrder(key)) throw',
    broken: 'if (false) throw',
    fails: { 'log-key': ['a log key > is judged by', 'a log key > in a vkey is judged'] },
  },
  {
    file: 'keys/base64.ts',
    line: 'bytes.length === lengthBytes && platformCrypto.toBase64(bytes) === text ?',
    broken: 'bytes.length === lengthBytes ?',
    fails: { 'log-key': ['a log key > is 32 bytes in strict base64'] },
  },
  {
    file: 'log/log-key.ts',
    line: 'keyIdOf(origin, publicKey) === keyId ?',
    broken: 'true ?',
    fails: { 'log-key': ['a vkey is refused with'] },
  },
  {
    file: 'log/note.ts',
    line: 'end < text.length',
    broken: 'true',
    fails: { note: ['whether bytes follow a note is told'] },
  },
  {
    file: 'log/note.ts',
    line: ' && parseNote(text.slice(0, end)) !== null;',
    broken: ';',
    fails: { note: ['a text that is no note has nothing behind a note'] },
  },
  {
    file: 'log/note.ts',
    line: "note.lastIndexOf('\\n\\n')",
    broken: "note.indexOf('\\n\\n')",
    fails: { note: ['the example of c2sp.org/signed-note'] },
  },
  {
    file: 'log/note.ts',
    line: '  blob.set(signature, KEY_ID_BYTES);',
    broken: '',
    fails: { note: ['a note of the vectors is read and written'] },
  },
  {
    file: 'log/note.ts',
    line: 'blob.length <= KEY_ID_BYTES',
    broken: 'blob.length < KEY_ID_BYTES',
    fails: { note: ['a note is refused'] },
  },
  {
    file: 'log/note.ts',
    line: 'if (lines.length > NOTE_SIGNATURES_MAX) return null;',
    broken: '',
    fails: { note: ['a note has at most 100 signatures'] },
  },
  {
    file: 'log/note.ts',
    line: 'note.length > NOTE_CHARS_MAX || ',
    broken: '',
    fails: { note: ['a note has room for 16 signatures'] },
  },
  {
    file: 'log/note.ts',
    line: '(encoded.length / 4) * 3 - padding',
    broken: '(encoded.length / 4) * 3',
    fails: { note: ['a note keeps the signatures of all keys'] },
  },
  {
    file: 'log/checkpoint.ts',
    line: 'if (checkpoint.origin !== origin)',
    broken: 'if (false)',
    fails: { checkpoint: ['a checkpoint is refused where another origin'] },
  },
  {
    file: 'log/checkpoint.ts',
    line: 'if (parseOrigin(origin) === null)',
    broken: 'if (false)',
    fails: {
      checkpoint: ['a checkpoint is refused whose origin is no origin'],
      'proof-file': ['the proof file of the vectors is refused'],
    },
  },
  {
    file: 'log/checkpoint.ts',
    line: "new ProofRefused('malformed', ",
    broken: "new ProofRefused('wrong_origin', ",
    fails: { checkpoint: ['a note that is no signed note'] },
  },
  {
    file: 'log/checkpoint.ts',
    line: 'if (!isSigned)',
    broken: 'if (false)',
    fails: { checkpoint: ['a checkpoint that no listed key signed'] },
  },
  {
    file: 'log/checkpoint.ts',
    line: 'if (known.length === 0) continue;',
    broken: "if (known.length === 0) throw new ProofRefused('unknown_log_key', '');",
    fails: { checkpoint: ['each listed key may sign'], 'foreign-proof': ['signatures of witnesses'] },
  },
  {
    file: 'log/checkpoint.ts',
    line: 'signature.length !== SIGNATURE_BYTES || !known.some(({ key }) => key.verify(message, signature))',
    broken: 'signature.length !== SIGNATURE_BYTES',
    fails: {
      checkpoint: [
        'a wrong signature of a listed key',
        'a checkpoint does not verify with any changed byte',
        'a signature whose R is the identity point',
        'of two listed keys with the same key id',
      ],
    },
  },
  {
    file: 'log/checkpoint.ts',
    line: 'if (parseOrigin(origin)?.serviceName !== serviceName) throw',
    broken: 'if (false) throw',
    fails: { checkpoint: ['a checkpoint is not signed'] },
  },
  {
    file: 'log/checkpoint.ts',
    line: '([^\\n]+)\\n$/;',
    broken: '([^\\n]+)\\n/;',
    fails: { checkpoint: ['a text that the log key did sign is refused'] },
  },
  {
    file: 'log/proof-file.ts',
    line: 'if (index !== null && proven !== index)',
    broken: 'if (false)',
    fails: {
      'proof-file': ['a proof file is refused > whose index was changed'],
      'foreign-proof': ['another index is refused'],
    },
  },
  {
    file: 'log/proof-file.ts',
    line: 'if (!isIncluded(',
    broken: 'if (false && !isIncluded(',
    fails: {
      'proof-file': ['a proof file is refused > whose hash was changed'],
      'foreign-proof': ['a hash left over', 'a missing hash', 'another record is refused'],
    },
  },
  {
    file: 'log/proof-file.ts',
    line: 'leafHash: leafHash(record),',
    broken: 'leafHash: record,',
    fails: { 'foreign-proof': ['a proof of a log with any name'] },
  },
  {
    file: 'log/proof-file.ts',
    line: ' || lines.length > HASHES_MAX) return null;',
    broken: ') return null;',
    fails: { 'proof-file': ['a proof file is refused > with 54 hashes'] },
  },
  {
    file: 'log/proof-file.ts',
    line: 'format !== FORMAT || ',
    broken: '',
    fails: { 'proof-file': ['a proof file is refused > '] },
  },
  {
    file: 'log/proof-file.ts',
    line: 'const HASHES_MAX = 53;',
    broken: 'const HASHES_MAX = 52;',
    fails: { 'proof-file': ['a proof file may hold the longest proof'] },
  },
  {
    file: 'log/foreign-proof.ts',
    line: "file.replace(EXTRA_LINE, '$1')",
    broken: 'file',
    fails: { 'foreign-proof': ['a line `extra` and extension lines'] },
  },
  {
    file: 'log/foreign-proof.ts',
    line: '(?:[^\\n]+\\n)*$/;',
    broken: '$/;',
    fails: { 'foreign-proof': ['a line `extra` and extension lines'] },
  },
  {
    file: 'log/foreign-proof.ts',
    line: 'if (name !== origin)',
    broken: 'if (false)',
    fails: { 'foreign-proof': ['a checkpoint whose first line'] },
  },
  {
    file: 'log/foreign-proof.ts',
    line: '  checkSignatures(note, origin, [key]);',
    broken: '',
    fails: { 'foreign-proof': ['a checkpoint under another key', 'a changed checkpoint'] },
  },
  {
    file: 'log/foreign-proof.ts',
    line: 'if (root === null || !Number.isSafeInteger(size))',
    broken: 'if (false)',
    fails: {
      'foreign-proof': ['a size with a leading zero', 'a tree without leaves', 'a root of another length'],
    },
  },
  {
    file: 'log/foreign-proof.ts',
    line: 'if (proof === null || note === null) throw',
    broken: 'if (false) throw',
    fails: { 'foreign-proof': ['two lines `extra`', 'no checkpoint'] },
  },
  {
    file: 'log/foreign-proof.ts',
    line: 'keys: [key] }',
    broken: 'keys: [] }',
    fails: { 'foreign-proof': ['the proof files of the vectors verify'] },
  },
  {
    file: 'log/foreign-proof.ts',
    line: 'return OWN_ORIGIN.test(leaf.origin) ?',
    broken: 'return false ?',
    fails: { 'foreign-proof': ['an upper-case id in the origin', 'an extension line'] },
  },
  {
    file: 'log/foreign-proof.ts',
    line: 'return OWN_ORIGIN.test(leaf.origin) ? verifyOwnProof(file, leaf) : verifyAnyProof(file, leaf);',
    broken: 'return { origin: leaf.origin, index: 0, size: 1 };',
    // Vitest shortens what it puts into a title to 40 characters.
    fails: { 'foreign-proof': logVectors.refused.map(({ what }) => `${what} is refused here`.slice(0, 39)) },
  },
  {
    file: 'event/content.ts',
    line: "'svc-event-v1\\0'",
    broken: "'svc-event-v2\\0'",
    fails: { 'proof-file': ['the records of the vectors are'] },
  },
  {
    file: 'log/endorsement.ts',
    line: '`svc-log-key-v1',
    broken: '`svc-log-key-v2',
    fails: { endorsement: ['the endorsement of the vectors'] },
  },
  {
    file: 'log/endorsement.ts',
    line: 'bytes !== null && verify(endorsementDigest(endorsement), bytes);',
    broken: 'bytes !== null;',
    fails: { endorsement: ['an endorsement is of one service'] },
  },
  {
    file: 'log/endorsement.ts',
    line: '&& bytes !== null && verify',
    broken: '&& verify',
    fails: { endorsement: ['an endorsement with a key or a signature of another form'] },
  },
  {
    file: 'log/endorsement.ts',
    line: 'if (publicKey.length !== PUBLIC_KEY_BYTES)',
    broken: 'if (false)',
    fails: { endorsement: ['there is no digest for another form'] },
  },
];
