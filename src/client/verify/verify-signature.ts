import { authorityDigest } from '../../domain/event/content.ts';
import type { IssueType } from '../../domain/event/integrity.ts';
import {
  checkSignatureForm,
  parseAuthorityKid,
  parseKid,
  sigDigest,
  verifyDigest,
} from '../../domain/keys/signature.ts';
import { parseRfc3339 } from '../../domain/values/time.ts';
import type { ReadEvent } from '../event.ts';
import { type ActorDocumentKey, type AuthorityKeys, createKeyReader, type KeySource } from './key-source.ts';
import { authorityTypes } from './verify-payload.ts';

/** The result of checking one signature or seal. */
type SignatureFinding =
  | { readonly kind: 'actor' | 'authority'; readonly outcome: 'good' }
  | { readonly kind: 'actor' | 'authority'; readonly outcome: 'unknown_keys'; readonly detail: string }
  | {
      readonly kind: 'actor' | 'authority';
      readonly outcome: 'bad';
      readonly type: IssueType;
      readonly detail: string;
    };

/**
 * The clocks of nodes differ by up to half a second, and a key may be enrolled on one node while another node accepts
 * an event.
 */
const CLOCK_TOLERANCE_MS = 1_000;
/** An actor with keys must sign. An event this soon after its first enrolment may have been sent before it. */
const ENROLMENT_TOLERANCE_MS = 15_000;
/** Events that an actor with keys may cause unsigned: POST and DELETE …/access. */
const mayBeUnsigned: ReadonlySet<string> = new Set(['MASTER_DELEGATION_GRANTED', 'MASTER_DELEGATION_REVOKED']);

/**
 * Makes a function that checks the actor signature and the authority seal of an event, and returns what it finds of
 * each (docs/verifying.md, sections 1 and 4). `authorityKeys` null: seals are found with `unknown_keys`. The function
 * rejects with what `keys` throws.
 */
export function createSignatureCheck(keys: KeySource, authorityKeys: AuthorityKeys | null) {
  const readKey = createKeyReader();

  const actorSignature = async (
    read: ReadEvent,
    actorId: string | null,
    kidText: string | null,
    signature: string,
    signed: string,
  ): Promise<SignatureFinding> => {
    const bad = (detail: string): SignatureFinding => ({
      kind: 'actor',
      outcome: 'bad',
      type: 'invalid_actor_sig',
      detail,
    });
    const kid = kidText === null ? null : parseKid(kidText);
    if (kid === null || kid.actorId !== actorId) return bad('the signing key is none of the actor that signed');
    const document = await keys.document(kid.actorId);
    if (document === null) {
      return { kind: 'actor', outcome: 'unknown_keys', detail: `no resolver document of ${kid.actorId} is at hand` };
    }
    if (document.actorId !== kid.actorId) return bad('the resolver document is that of another actor');
    const key = document.keys.find((held) => held.kid === kidText);
    if (key === undefined) return bad('the signing key is not among the keys of the actor');
    if (!heldAt(key, read.event.createdAt)) return bad('the signing key was not valid at the time of the event');
    const good = verifies(
      readKey(key.publicKey),
      signature,
      sigDigest(read.event.eventType, read.event.ledgerId, signed),
    );
    return good ? { kind: 'actor', outcome: 'good' } : bad('the signature does not verify over what was signed');
  };

  const seal = (read: ReadEvent): SignatureFinding => {
    const { authoritySig, authorityKeyId, hash, createdAt } = read.event;
    const bad = (detail: string): SignatureFinding => ({
      kind: 'authority',
      outcome: 'bad',
      type: 'invalid_authority_sig',
      detail,
    });
    if (authoritySig === null || authorityKeyId === null || parseAuthorityKid(authorityKeyId) === null) {
      return bad('neither an actor nor the authority has signed the event');
    }
    if (authorityKeys === null) {
      return { kind: 'authority', outcome: 'unknown_keys', detail: 'no key of the authority is at hand' };
    }
    const key = authorityKeys.find((held) => held.kid === authorityKeyId);
    if (key === undefined) return bad('the key of the seal is none of the authority');
    const time = parseRfc3339(createdAt) ?? Number.NaN;
    const from = (parseRfc3339(key.validFrom) ?? Number.NaN) - CLOCK_TOLERANCE_MS;
    const to =
      key.validTo === null ? Number.POSITIVE_INFINITY : (parseRfc3339(key.validTo) ?? Number.NaN) + CLOCK_TOLERANCE_MS;
    if (!(time >= from && time <= to)) return bad('the key of the authority was not in use at the time of the event');
    const good = verifies(readKey(key.publicKey), authoritySig, authorityDigest(hash));
    return good
      ? { kind: 'authority', outcome: 'good' }
      : bad('the seal of the authority does not verify over the hash');
  };

  /** An actor that had keys must have signed what it appended. A removed signature would show nowhere else. */
  const missingSignature = async (read: ReadEvent): Promise<SignatureFinding[]> => {
    const { eventType, actorId, createdAt } = read.event;
    if (authorityTypes.has(eventType) || mayBeUnsigned.has(eventType) || actorId === null) return [];
    const document = await keys.document(actorId);
    const time = (parseRfc3339(createdAt) ?? Number.NaN) - ENROLMENT_TOLERANCE_MS;
    if (!document?.keys.some((key) => (parseRfc3339(key.validFrom) ?? Number.NaN) <= time)) return [];
    const detail = 'the actor had signing keys, so the event must be signed, and it is not';
    return [{ kind: 'actor', outcome: 'bad', type: 'invalid_actor_sig', detail }];
  };

  return async (read: ReadEvent): Promise<SignatureFinding[]> => {
    const { event } = read;
    const bad = (detail: string): SignatureFinding => ({
      kind: 'actor',
      outcome: 'bad',
      type: 'invalid_actor_sig',
      detail,
    });
    if (event.actorSig !== null) {
      if (authorityTypes.has(event.eventType))
        return [bad(`an event of type ${event.eventType} is not signed by an actor`)];
      if (event.authoritySig !== null || event.authorityKeyId !== null)
        return [bad('an event that an actor signed has no seal')];
      return [
        await actorSignature(
          read,
          event.actorId,
          event.signingKeyId,
          event.actorSig,
          read.actorSigPayload ?? read.payload,
        ),
      ];
    }
    const findings = [seal(read), ...(await missingSignature(read))];
    if (event.signingKeyId !== null) findings.push(bad('a signing key is named and no signature is there'));
    const { requestor_sig: sig, requestor_signing_key_id: kid } = event.payload;
    if (
      event.eventType === 'LEDGER_CLOSED' &&
      (sig !== undefined || kid !== undefined || read.actorSigPayload !== null)
    ) {
      if (typeof sig !== 'string' || typeof kid !== 'string' || read.actorSigPayload === null) {
        findings.push(bad('the request to close was signed, and part of that signature is missing'));
      } else findings.push(await actorSignature(read, event.actorId, kid, sig, read.actorSigPayload));
    } else if (read.actorSigPayload !== null) findings.push(bad('a signed payload is given and no signature is there'));
    return findings;
  };
}

function heldAt(key: ActorDocumentKey, createdAt: string): boolean {
  const time = parseRfc3339(createdAt);
  const from = parseRfc3339(key.validFrom);
  const to = key.revokedAt === null ? Number.POSITIVE_INFINITY : parseRfc3339(key.revokedAt);
  if (time === null || from === null || to === null) return false;
  if (key.status !== 'ACTIVE' && key.revokedAt === null) return false;
  return time >= from && time < to;
}

function verifies(key: ReturnType<ReturnType<typeof createKeyReader>>, signature: string, digest: Uint8Array): boolean {
  if (key === null) return false;
  try {
    return verifyDigest(digest, checkSignatureForm(signature), key);
  } catch {
    return false;
  }
}
