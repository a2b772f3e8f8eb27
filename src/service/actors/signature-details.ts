import type { ErrorDetails } from '../../domain/errors.ts';
import { toHex } from '../../domain/keys/hex.ts';
import { sigDigest } from '../../domain/keys/signature.ts';
import type { StatedInput } from '../calls/call.ts';

export interface SigningInput {
  readonly eventType: string;
  readonly ledgerId: string;
  /** Canonical JSON texts, any of which may have been signed. Errors show the first one as expected. */
  readonly forms: readonly [string, ...string[]];
  /** All of it comes from the request, so errors may show it to a caller that proved nothing. */
  readonly isAllSent?: true;
}

/** Characters of X-Actor-Canonical. Headers have 16 KiB together. */
const canonicalMaxChars = 8 * 1024;
/** Bytes of each text from the first difference on. */
const excerptBytes = 32;

/**
 * The details of `invalid_signature`: what was expected, and if the caller says what it signed, where that differs. Of
 * the caller's headers only valid values are repeated. Beside several accepted forms the one nearest to the caller's is
 * shown.
 */
export function signatureDetails(
  { eventType, ledgerId, forms }: SigningInput,
  keyId: string,
  stated: StatedInput,
): ErrorDetails {
  const digestOf = (form: string) => toHex(sigDigest(eventType, ledgerId, form));
  const { digest, canonical } = validOf(stated);
  const form = forms.find((one) => digestOf(one) === digest) ?? nearest(forms, canonical);
  const expectedBytes = Buffer.from(form);
  const expectedDigest = digestOf(form);
  const differsAt = canonical === null ? null : firstDifference(expectedBytes, canonical);
  const hint = hintOf(stated, { digest, canonical, expectedDigest, differsAt });
  return {
    event_type: eventType,
    ledger_id: ledgerId,
    expected_canonical_json: form,
    signing_key_id: keyId,
    expected_canonical_bytes: expectedBytes.length,
    expected_digest: expectedDigest,
    ...sentDetails({ digest, canonical }),
    ...(canonical === null || differsAt === null
      ? {}
      : {
          first_difference: {
            byte: differsAt,
            expected: excerpt(expectedBytes, differsAt),
            sent: excerpt(canonical, differsAt),
          },
        }),
    ...(hint === null ? {} : { hint }),
  };
}

/**
 * The same for a caller that proved nothing: what it sent, compared with nothing. The place of a difference, or that
 * there is none, would confirm a guess of what the ledger holds.
 */
export function undisclosedDetails(input: SigningInput, keyId: string, stated: StatedInput): ErrorDetails {
  const valid = validOf(stated);
  return {
    event_type: input.eventType,
    signing_key_id: keyId,
    ...sentDetails(valid),
    hint: invalidHeaderHint(stated, valid) ?? undisclosedHint,
  };
}

const undisclosedHint =
  'A caller that only names an entity is not told what was expected: GET /v1/traceledger/master/{uuid}, signed as an ENTITY_REQUEST, answers the facts of the master.';

interface Valid {
  /** null: not sent, or not valid. */
  readonly digest: string | null;
  readonly canonical: Buffer | null;
}

function validOf(stated: StatedInput): Valid {
  return {
    digest: stated.digest !== null && /^[0-9a-f]{64}$/.test(stated.digest) ? stated.digest : null,
    canonical: stated.canonical === null ? null : canonicalBytes(stated.canonical),
  };
}

function sentDetails({ digest, canonical }: Valid): ErrorDetails {
  return {
    ...(digest === null ? {} : { sent_digest: digest }),
    ...(canonical === null
      ? {}
      : { sent_canonical_json: canonical.toString(), sent_canonical_bytes: canonical.length }),
  };
}

interface Compared extends Valid {
  readonly expectedDigest: string;
  readonly differsAt: number | null;
}

function invalidHeaderHint(stated: StatedInput, { digest, canonical }: Valid): string | null {
  if (stated.digest !== null && digest === null)
    return 'X-Actor-Digest is not the SHA-256 in 64 lower-case hexadecimal digits.';
  if (stated.canonical !== null && canonical === null) {
    const what = `standard base64 with padding, of 1 to ${canonicalMaxChars} characters`;
    return `X-Actor-Canonical is not the canonical JSON in ${what}.`;
  }
  return null;
}

function hintOf(stated: StatedInput, compared: Compared): string | null {
  const { digest, canonical, expectedDigest, differsAt } = compared;
  const invalid = invalidHeaderHint(stated, compared);
  if (invalid !== null) return invalid;
  if (digest === expectedDigest)
    return 'The digest that you signed is the expected one: check the key, and that Ed25519 signs the 32 bytes of it.';
  if (differsAt !== null)
    return `The canonical JSON that you signed differs from the expected one at byte ${differsAt}.`;
  if (canonical !== null) {
    const rest = 'check the event type, the ledger id and the zero byte behind each of them';
    return digest === null
      ? `The canonical JSON is the expected one: ${rest}, then the key. X-Actor-Digest tells which.`
      : `The canonical JSON is the expected one, the digest is not: ${rest}.`;
  }
  return digest === null ? null : 'The digest that you signed differs: send X-Actor-Canonical too, to see where.';
}

/** null for anything but strict standard base64 within the bound. */
function canonicalBytes(base64: string): Buffer | null {
  if (base64 === '' || base64.length > canonicalMaxChars) return null;
  const bytes = Buffer.from(base64, 'base64');
  return bytes.toString('base64') === base64 ? bytes : null;
}

/** The form that has the longest beginning in common with what was sent. */
function nearest(forms: SigningInput['forms'], sent: Buffer | null): string {
  if (sent === null) return forms[0];
  const common = (form: string) => firstDifference(Buffer.from(form), sent) ?? Number.POSITIVE_INFINITY;
  return forms.reduce((best, form) => (common(form) > common(best) ? form : best));
}

/** The index of the first byte that differs. null: the texts are equal. */
function firstDifference(one: Buffer, other: Buffer): number | null {
  if (one.equals(other)) return null;
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

/** Starts and ends at whole characters. */
function excerpt(text: Buffer, at: number): string {
  const isWithinCharacter = (index: number) => ((text[index] ?? 0) & 0xc0) === 0x80;
  let start = at;
  while (start > 0 && at - start < 3 && isWithinCharacter(start)) start -= 1;
  let end = Math.min(text.length, start + excerptBytes);
  while (end > start && isWithinCharacter(end)) end -= 1;
  return text.toString('utf8', start, end);
}
