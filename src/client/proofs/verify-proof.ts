import { decodeBase64, encodeBase64 } from '../../domain/keys/base64.ts';
import { type Checkpoint, verifyCheckpoint as verifyNote } from '../../domain/log/checkpoint.ts';
import { type LogKey, logKey, parseVkey } from '../../domain/log/log-key.ts';
import { isServiceName, parseOrigin } from '../../domain/log/origin.ts';
import { verifyProofFile } from '../../domain/log/proof-file.ts';
import { ProofRefused } from '../../domain/log/proof-refused.ts';
import { HASH_BYTES } from '../../domain/log/tree.ts';
import { isConsistent } from '../../domain/log/tree-proof.ts';

/** Pure checks of checkpoints and proofs (docs/proofs.md). All throw ProofRefused. */

/** Of which log a checkpoint must be, and by whom. */
export interface ExpectedLog {
  /** Of the log, for example `ledger.example/v1/ledgers/0193a000-0000-7000-8000-000000000001`. */
  readonly origin: string;
  /**
   * Log keys of the service: each 32 bytes in base64, or a vkey. TypeError for a text that is neither, ProofRefused for
   * a vkey that names another service than the origin does.
   */
  readonly keys: readonly string[];
}

export interface ExpectedRecord extends ExpectedLog {
  /** 32 bytes: `hash` of the event in a ledger log, `content_hash` in a master log. */
  readonly record: Uint8Array;
  /** `seq` of the event in a ledger log, `master_seq` in a master log. */
  readonly index: number;
}

/** The checkpoint that a signed note states. */
export function verifyCheckpoint(note: string, { origin, keys }: ExpectedLog): Checkpoint {
  return verifyNote(note, origin, keysOf(keys, origin));
}

/** The checkpoint of a proof file, which is proved to cover the record at the index. */
export function verifyInclusion(proofFile: string, { record, index, origin, keys }: ExpectedRecord): Checkpoint {
  return verifyProofFile(proofFile, { record, index, origin, keys: keysOf(keys, origin) });
}

/** That the log was at `to` a continuation of what it was at `from`. `hashes`: the proof, each in base64. */
export function verifyConsistency(from: Checkpoint, to: Checkpoint, hashes: readonly string[]): void {
  if (from.origin !== to.origin)
    throw new ProofRefused('wrong_origin', `${from.origin} and ${to.origin} are two logs.`);
  const decoded = hashes.map((hash) => decodeBase64(hash, HASH_BYTES)).filter((hash) => hash !== null);
  const sizes = { oldSize: from.size, oldRoot: from.root, newSize: to.size, newRoot: to.root };
  if (decoded.length !== hashes.length || !isConsistent({ ...sizes, hashes: decoded }))
    throw new ProofRefused(
      'not_consistent',
      `The proof does not show that the first ${from.size} events of ${from.origin} are those of size ${to.size}.`,
    );
}

function keysOf(texts: readonly string[], origin: string): LogKey[] {
  const serviceName = parseOrigin(origin)?.serviceName ?? origin;
  return texts.map((text) => logKeyOfService(text, serviceName).key);
}

/** The log key of a text, as `givenLogKey`. ProofRefused for a vkey that names another service. */
export function logKeyOfService(text: string, expected: string): GivenLogKey {
  const given = givenLogKey(text);
  const { serviceName } = given;
  if (serviceName !== null && serviceName !== expected)
    throw new ProofRefused('wrong_origin', `The log key is of ${serviceName}, not of ${expected}.`);
  return given;
}

interface GivenLogKey {
  readonly key: LogKey;
  /** 32 bytes in base64. */
  readonly publicKey: string;
  /** The service that the name of a vkey names. null: the text is a key alone. */
  readonly serviceName: string | null;
}

/** `text`: 32 bytes in base64, or a vkey of a log or of the service. TypeError for anything else. */
export function givenLogKey(text: string): GivenLogKey {
  const alone = logKey(text);
  if (alone !== null) return { key: alone, publicKey: text, serviceName: null };
  const vkey = parseVkey(text);
  const serviceName = vkey === null ? null : serviceNameIn(vkey.origin);
  if (vkey === null || serviceName === null)
    throw new TypeError(`${JSON.stringify(text)} is no log key: give 32 bytes in base64, or a vkey of one of its logs`);
  return { key: vkey.key, publicKey: encodeBase64(vkey.key.publicKey), serviceName };
}

function serviceNameIn(origin: string): string | null {
  return parseOrigin(origin)?.serviceName ?? (isServiceName(origin) ? origin : null);
}
