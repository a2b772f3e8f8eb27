import { decodeBase64, encodeBase64 } from '../keys/base64.ts';
import { SIGNATURE_BYTES } from '../keys/signature.ts';
import { keyIdOf, type LogKey } from './log-key.ts';
import { formatNote, hasBytesAfterNote, parseNote, type SignedNote } from './note.ts';
import { parseOrigin } from './origin.ts';
import { ProofRefused } from './proof-refused.ts';
import { HASH_BYTES } from './tree.ts';

/** Checkpoints (c2sp.org/tlog-checkpoint) of ledger logs and master logs (docs/proofs.md, "Checkpoint"). */

/** Three lines and no extension lines. The size has no leading zero and is at least 1. */
const CHECKPOINT_TEXT = /^([^\n]+)\n([1-9][0-9]{0,15})\n([^\n]+)\n$/;

export interface Checkpoint {
  readonly origin: string;
  /** Number of leaves, at least 1. */
  readonly size: number;
  /** 32 bytes. */
  readonly root: Uint8Array;
}

/** The log key of a service. */
export interface LogSigner {
  /** The value of LOG_ORIGIN. */
  readonly serviceName: string;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** The Ed25519 signature (64 bytes) of a message. */
  readonly sign: (message: Uint8Array) => Uint8Array;
}

/**
 * The signed note. RangeError for an origin that is not of a log of the signer's service, a size below 1 and a root of
 * another length: the log key signs nothing else.
 */
export function signCheckpoint(checkpoint: Checkpoint, { serviceName, publicKey, sign }: LogSigner): string {
  const { origin, size, root } = checkpoint;
  if (parseOrigin(origin)?.serviceName !== serviceName) throw new RangeError(`${origin} is no log of ${serviceName}`);
  if (!Number.isSafeInteger(size) || size < 1) throw new RangeError(`No checkpoint has size ${size}`);
  if (root.length !== HASH_BYTES) throw new RangeError(`A root has ${HASH_BYTES} bytes, not ${root.length}`);
  const text = `${origin}\n${size}\n${encodeBase64(root)}\n`;
  const signature = sign(new TextEncoder().encode(text));
  return formatNote(text, { keyName: origin, keyId: keyIdOf(origin, publicKey), signature });
}

/**
 * The checkpoint that a note states, once its form, its origin and its signature are verified. `origin`: the log that
 * the caller asked for. `keys`: the keys that the service lists for it. Signatures by other keys are ignored; a wrong
 * one by a listed key refuses the note. Throws ProofRefused. A size of 2^53 or more is `malformed`.
 */
export function verifyCheckpoint(note: string, origin: string, keys: readonly LogKey[]): Checkpoint {
  if (parseOrigin(origin) === null)
    throw new ProofRefused('wrong_origin', `No ledger log or master log has the origin ${JSON.stringify(origin)}.`);
  const { signed, checkpoint } = parseCheckpoint(note);
  // A signature does not cover the name of its key, so that only this line says whose log it is.
  if (checkpoint.origin !== origin)
    throw new ProofRefused('wrong_origin', `The checkpoint is of ${checkpoint.origin}, not of ${origin}.`);
  checkSignatures(signed, origin, keys);
  return checkpoint;
}

/** What a note states. Nothing of it is verified but its form. Throws ProofRefused `malformed`. */
export function parseCheckpoint(note: string): { readonly signed: SignedNote; readonly checkpoint: Checkpoint } {
  const signed = parseNote(note);
  const checkpoint = signed === null ? null : parseCheckpointText(signed.text);
  if (signed === null || checkpoint === null) throw malformedNote(note, 'This is no checkpoint');
  return { signed, checkpoint };
}

function parseCheckpointText(text: string): Checkpoint | null {
  const [, origin = '', digits, encodedRoot = ''] = CHECKPOINT_TEXT.exec(text) ?? [];
  const size = Number(digits);
  const root = decodeBase64(encodedRoot, HASH_BYTES);
  return Number.isSafeInteger(size) && root !== null ? { origin, size, root } : null;
}

/** `what`: a sentence that says what was expected, without its full stop. */
export function malformedNote(note: string, what: string): ProofRefused {
  const why = hasBytesAfterNote(note)
    ? ': there are bytes after the note, such as the line feed that `jq -r` adds'
    : '';
  return new ProofRefused('malformed', `${what}${why}.`);
}

/** `keyName`: under which the keys sign. Throws ProofRefused unless one of the keys has signed, and none wrongly. */
export function checkSignatures({ text, signatures }: SignedNote, keyName: string, keys: readonly LogKey[]): void {
  const message = new TextEncoder().encode(text);
  const idsOfKeys = keys.map((key) => ({ key, keyId: keyIdOf(keyName, key.publicKey) }));
  let isSigned = false;
  for (const { keyName: signer, keyId, signature } of signatures) {
    const known = signer === keyName ? idsOfKeys.filter((one) => one.keyId === keyId) : [];
    if (known.length === 0) continue;
    if (signature.length !== SIGNATURE_BYTES || !known.some(({ key }) => key.verify(message, signature)))
      throw new ProofRefused('invalid_signature', `The signature by the key ${keyId} does not verify.`);
    isSigned = true;
  }
  if (!isSigned)
    throw new ProofRefused(
      'unknown_log_key',
      'None of the accepted log keys has signed the checkpoint. If the service has a new one, ask its operator for the key, and accept that.',
    );
}
