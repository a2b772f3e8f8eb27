import { decodeBase64, encodeBase64 } from '../keys/base64.ts';
import { type Checkpoint, verifyCheckpoint } from './checkpoint.ts';
import type { LogKey } from './log-key.ts';
import { NOTE_CHARS_MAX } from './note.ts';
import { ProofRefused } from './proof-refused.ts';
import { HASH_BYTES, leafHash } from './tree.ts';
import { isIncluded } from './tree-proof.ts';

/**
 * Proof files (c2sp.org/tlog-proof), without `extra`: an index, the hashes of a proof of inclusion and a checkpoint.
 */

const FORMAT = 'c2sp.org/tlog-proof@v1';
/** A tree of less than 2^53 leaves has no longer proof. */
const HASHES_MAX = 53;
const HEAD = /^index (0|[1-9][0-9]{0,15})$/;
const CHARS_MAX = NOTE_CHARS_MAX + 4_096;

interface ProofFile {
  /** Of the leaf, from 0. */
  readonly index: number;
  /** From the leaf's sibling up. */
  readonly hashes: readonly Uint8Array[];
  /** The signed note, not verified. */
  readonly checkpoint: string;
}

export function formatProofFile({ index, hashes, checkpoint }: ProofFile): string {
  return [FORMAT, `index ${index}`, ...hashes.map(encodeBase64), '', checkpoint].join('\n');
}

/** null: another form, `extra` included. Nothing is verified. */
export function parseProofFile(file: string): ProofFile | null {
  if (file.length > CHARS_MAX) return null;
  const end = file.indexOf('\n\n');
  if (end < 0) return null;
  const [format, head = '', ...lines] = file.slice(0, end).split('\n');
  const index = Number(HEAD.exec(head)?.[1]);
  if (format !== FORMAT || !Number.isSafeInteger(index) || lines.length > HASHES_MAX) return null;
  const hashes = lines.map((line) => decodeBase64(line, HASH_BYTES)).filter((hash) => hash !== null);
  return hashes.length === lines.length ? { index, hashes, checkpoint: file.slice(end + 2) } : null;
}

/** What the verifier knows from elsewhere than the proof file. */
export interface ExpectedLeaf {
  /** 32 bytes: `hash` of an event in a ledger log, `content_hash` in a master log. */
  readonly record: Uint8Array;
  /** `seq` in a ledger log, `master_seq` in a master log. */
  readonly index: number;
  readonly origin: string;
  readonly keys: readonly LogKey[];
}

/** The checkpoint of the file, which is proved to cover the record at the index. Throws ProofRefused. */
export function verifyProofFile(file: string, { record, index, origin, keys }: ExpectedLeaf): Checkpoint {
  const proof = parseProofFile(file);
  if (proof === null) throw new ProofRefused('malformed', 'This is no proof file.');
  const checkpoint = verifyCheckpoint(proof.checkpoint, origin, keys);
  checkInclusion(proof, checkpoint, { record, index });
  return checkpoint;
}

/** Throws ProofRefused unless the proof shows that the record is in the tree. `index`: the expected one. null: any. */
export function checkInclusion(
  { index: proven, hashes }: ProofFile,
  { size, root }: Pick<Checkpoint, 'size' | 'root'>,
  { record, index }: { readonly record: Uint8Array; readonly index: number | null },
): void {
  if (index !== null && proven !== index)
    throw new ProofRefused('wrong_index', `The proof is for the index ${proven}, not for ${index}.`);
  if (!isIncluded({ leafHash: leafHash(record), index: proven, size, root, hashes }))
    throw new ProofRefused('not_included', `The proof does not show that the record is at index ${proven}.`);
}
