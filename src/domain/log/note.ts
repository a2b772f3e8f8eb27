import { decodeBase64, encodeBase64 } from '../keys/base64.ts';
import { toHex } from '../keys/hex.ts';

/** Signed notes (c2sp.org/signed-note): a text, and lines of signatures behind an empty line. */

/** The format demands room for 16 signatures. Those of post-quantum keys have up to 7,000 characters. */
export const NOTE_CHARS_MAX = 131_072;
export const NOTE_SIGNATURES_MAX = 100;

const KEY_ID_BYTES = 4;

interface NoteSignature {
  readonly keyName: string;
  /** 8 hex digits. */
  readonly keyId: string;
  /** At least one byte. */
  readonly signature: Uint8Array;
}

export interface SignedNote {
  /** Ends with a line feed. The signatures cover its UTF-8. */
  readonly text: string;
  /** At least one, not verified. */
  readonly signatures: readonly NoteSignature[];
}

// The format forbids these. Line feeds end lines.
// biome-ignore lint/suspicious/noControlCharactersInRegex: see above
const CONTROL_CHARACTER = /[\0-\x09\x0b-\x1f]/;
/** A key name has no plus sign and no Unicode space. */
const SIGNATURE_LINE = /^— ([^+\p{White_Space}]+) ([A-Za-z0-9+/]+={0,2})$/u;

/** `keyId`: 8 hex digits, of 4 bytes. */
export function formatNote(text: string, { keyName, keyId, signature }: NoteSignature): string {
  const blob = new Uint8Array(KEY_ID_BYTES + signature.length);
  for (let at = 0; at < KEY_ID_BYTES; at += 1) blob[at] = Number.parseInt(keyId.slice(2 * at, 2 * at + 2), 16);
  blob.set(signature, KEY_ID_BYTES);
  return `${text}\n— ${keyName} ${encodeBase64(blob)}\n`;
}

/**
 * null: the text has another form, a line of signatures that is malformed, a control character, half a surrogate pair,
 * more than NOTE_SIGNATURES_MAX signatures, or more than NOTE_CHARS_MAX characters. Signatures are not verified.
 */
export function parseNote(note: string): SignedNote | null {
  if (note.length > NOTE_CHARS_MAX || CONTROL_CHARACTER.test(note) || !note.isWellFormed()) return null;
  const textEnd = note.lastIndexOf('\n\n') + 1;
  if (textEnd === 0 || !note.endsWith('\n')) return null;
  const lines = note.slice(textEnd + 1, -1).split('\n');
  if (lines.length > NOTE_SIGNATURES_MAX) return null;
  const signatures = lines.map(parseSignatureLine).filter((signature) => signature !== null);
  return signatures.length === lines.length ? { text: note.slice(0, textEnd), signatures } : null;
}

/** Whether bytes follow a whole note, such as the line feed that `jq -r` adds. */
export function hasBytesAfterNote(text: string): boolean {
  const lastLine = text.lastIndexOf('\n— ') + 1;
  const end = text.indexOf('\n', lastLine) + 1;
  return lastLine > 0 && end > 0 && end < text.length && parseNote(text.slice(0, end)) !== null;
}

function parseSignatureLine(line: string): NoteSignature | null {
  const [, keyName = '', encoded = ''] = SIGNATURE_LINE.exec(line) ?? [];
  const blob = decodeBase64(encoded, decodedLength(encoded));
  if (blob === null || blob.length <= KEY_ID_BYTES) return null;
  return { keyName, keyId: toHex(blob.subarray(0, KEY_ID_BYTES)), signature: blob.subarray(KEY_ID_BYTES) };
}

/** Bytes that base64 of this length and padding stands for. */
function decodedLength(encoded: string): number {
  const padding = encoded.length - encoded.replace(/=+$/, '').length;
  return (encoded.length / 4) * 3 - padding;
}
