import { decodeBase64 } from '../keys/base64.ts';
import { checkSignatures, malformedNote } from './checkpoint.ts';
import type { LogKey } from './log-key.ts';
import { parseNote } from './note.ts';
import { checkInclusion, parseProofFile, verifyProofFile } from './proof-file.ts';
import { ProofRefused } from './proof-refused.ts';
import { HASH_BYTES } from './tree.ts';

/** Proof files of any log that follows C2SP, also of services that are not of this project. */

/** The format allows it once, behind the first line. No hash and no signature covers it. */
const EXTRA_LINE = /^([^\n]*\n)extra [A-Za-z0-9+/]*={0,2}\n/;
/** c2sp.org/tlog-checkpoint: extension lines may follow, and are not empty. */
const CHECKPOINT_TEXT = /^([^\n]+)\n([1-9][0-9]{0,15})\n([^\n]+)\n(?:[^\n]+\n)*$/;

/** Names that end like this, in whatever case, are held to the stricter rules for logs of this project. */
const OWN_ORIGIN = /\/(?:ledgers|masters)\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

interface ForeignLeaf {
  /** What the log hashes as a leaf: any number of bytes. */
  readonly record: Uint8Array;
  /** null: any. */
  readonly index: number | null;
  /** The name and the key of a vkey. */
  readonly origin: string;
  readonly key: LogKey;
}

interface ForeignProof {
  readonly origin: string;
  readonly index: number;
  readonly size: number;
}

/**
 * Verifies that the record is in the log, at the index of the proof. The first line of the checkpoint must be the name
 * of the vkey. Throws ProofRefused. An index or a size of 2^53 or more is `malformed`.
 */
export function verifyForeignProof(file: string, leaf: ForeignLeaf): ForeignProof {
  return OWN_ORIGIN.test(leaf.origin) ? verifyOwnProof(file, leaf) : verifyAnyProof(file, leaf);
}

function verifyOwnProof(file: string, { record, index: expected, origin, key }: ForeignLeaf): ForeignProof {
  const index = expected ?? parseProofFile(file)?.index ?? 0;
  const { size } = verifyProofFile(file, { record, index, origin, keys: [key] });
  return { origin, index, size };
}

function verifyAnyProof(file: string, { record, index, origin, key }: ForeignLeaf): ForeignProof {
  const proof = parseProofFile(file.replace(EXTRA_LINE, '$1'));
  const note = proof === null ? null : parseNote(proof.checkpoint);
  if (proof === null || note === null) throw malformedNote(proof?.checkpoint ?? '', 'This is no proof file');
  const [, name, digits, encodedRoot = ''] = CHECKPOINT_TEXT.exec(note.text) ?? [];
  const size = Number(digits);
  const root = decodeBase64(encodedRoot, HASH_BYTES);
  if (root === null || !Number.isSafeInteger(size))
    throw new ProofRefused('malformed', 'The proof file holds no checkpoint of a log with leaves.');
  // A signature does not cover the name of its key.
  if (name !== origin) throw new ProofRefused('wrong_origin', `The checkpoint is of ${name}, not of ${origin}.`);
  checkSignatures(note, origin, [key]);
  checkInclusion(proof, { size, root }, { record, index });
  return { origin, index: proof.index, size };
}
