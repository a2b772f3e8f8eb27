import { authorityDigest } from '../../domain/event/content.ts';
import type { Ed25519Verifier } from '../../domain/keys/crypto-port.ts';
import {
  checkSignatureForm,
  digestVerifier,
  parseAuthorityKid,
  parseKid,
  sigDigest,
} from '../../domain/keys/signature.ts';
import { parseRfc3339 } from '../../domain/values/time.ts';
import type { Event, ReadEvent } from '../event.ts';
import type { ActorDocument, ActorDocumentKey, AuthorityKeys, KeySource } from './key-source.ts';
import { authorityTypes } from './verify-payload.ts';

/** The result of checking one signature or seal, or that an actor need not have signed. */
interface SignatureFinding {
  readonly kind: 'actor' | 'authority';
  /** `none_due`: by its document the actor had no keys yet, so it need not sign. An untrusted one does not show it. */
  readonly outcome: 'good' | 'none_due' | 'unknown_keys' | 'bad';
  /** Empty if the outcome is `good`. Of `none_due`: what is open if the document is not trusted. */
  readonly detail: string;
}

const badSignature = (detail: string): SignatureFinding => ({ kind: 'actor', outcome: 'bad', detail });
const unknownKeys = (actorId: string): SignatureFinding => ({
  kind: 'actor',
  outcome: 'unknown_keys',
  detail: `no resolver document of ${actorId} is at hand`,
});
const otherDocument = 'the resolver document is that of another actor';
const badSeal = (detail: string): SignatureFinding => ({ kind: 'authority', outcome: 'bad', detail });

/** The clocks of nodes differ by up to half a second. */
const CLOCK_TOLERANCE_MS = 1_000;
/** An actor with keys must sign. An event this soon after its first enrolment may have been sent before it. */
const ENROLMENT_TOLERANCE_MS = 15_000;
/** Events that an actor with keys may cause unsigned: POST and DELETE …/access. */
const mayBeUnsigned: ReadonlySet<string> = new Set(['MASTER_DELEGATION_GRANTED', 'MASTER_DELEGATION_REVOKED']);

/** Checks the signatures and the seal of an event. */
export type SignatureCheck = ReturnType<typeof createSignatureCheck>;

/**
 * Makes a function that checks the actor signature and the authority seal of an event (docs/verifying.md, sections 1
 * and 4). It rejects with what `keys` throws.
 */
export function createSignatureCheck(keys: KeySource, authorityKeys: AuthorityKeys | null) {
  const verifiers = new Map<string, Ed25519Verifier | null>();
  /** Returns null for a key that the service would not have enrolled: no signature verifies under it. */
  const verifierOf = (publicKey: string): Ed25519Verifier | null => {
    let verifier = verifiers.get(publicKey);
    if (verifier === undefined) {
      verifier = digestVerifier(publicKey);
      verifiers.set(publicKey, verifier);
    }
    return verifier;
  };

  const firstKeyTimes = new WeakMap<ActorDocument, number>();
  /** When the first key of the actor became valid. Infinity: it has none with a date. */
  const firstKeyAt = (document: ActorDocument): number => {
    let first = firstKeyTimes.get(document);
    if (first === undefined) {
      first = Number.POSITIVE_INFINITY;
      for (const { validFrom } of document.keys) {
        const time = timeOf(validFrom);
        // False for NaN, which Math.min would keep.
        if (time < first) first = time;
      }
      firstKeyTimes.set(document, first);
    }
    return first;
  };

  const actorSignature = async (
    { event }: ReadEvent,
    kidText: string | null,
    signature: string,
    signed: string,
  ): Promise<SignatureFinding> => {
    const kid = kidText === null ? null : parseKid(kidText);
    if (kid === null || kid.actorId !== event.actorId)
      return badSignature('the signing key is none of the actor that signed');
    const document = await keys.document(kid.actorId);
    if (document === null) return unknownKeys(kid.actorId);
    if (document.actorId !== kid.actorId) return badSignature(otherDocument);
    const key = document.keys.find((held) => held.kid === kidText);
    if (key === undefined) return badSignature('the signing key is not among the keys of the actor');
    if (!heldAt(key, event.createdAt)) return badSignature('the signing key was not valid at the time of the event');
    const digest = sigDigest(event.eventType, event.ledgerId, signed);
    return verifies(verifierOf(key.publicKey), signature, digest)
      ? { kind: 'actor', outcome: 'good', detail: '' }
      : badSignature('the signature does not verify over what was signed');
  };

  const seal = ({ authoritySig, authorityKeyId, hash, createdAt }: Event): SignatureFinding => {
    if (authoritySig === null || authorityKeyId === null || parseAuthorityKid(authorityKeyId) === null) {
      return badSeal('neither an actor nor the authority has signed the event');
    }
    if (authorityKeys === null) {
      return { kind: 'authority', outcome: 'unknown_keys', detail: 'no key of the authority is at hand' };
    }
    const key = authorityKeys.find((held) => held.kid === authorityKeyId);
    if (key === undefined) return badSeal('the key of the seal is none of the authority');
    const time = timeOf(createdAt);
    const to = key.validTo === null ? Number.POSITIVE_INFINITY : timeOf(key.validTo) + CLOCK_TOLERANCE_MS;
    if (!(time >= timeOf(key.validFrom) - CLOCK_TOLERANCE_MS && time <= to))
      return badSeal('the key of the authority was not in use at the time of the event');
    return verifies(verifierOf(key.publicKey), authoritySig, authorityDigest(hash))
      ? { kind: 'authority', outcome: 'good', detail: '' }
      : badSeal('the seal of the authority does not verify over the hash');
  };

  /**
   * An actor that had keys must have signed what it appended. A removed signature would show nowhere else, so it takes
   * the actor's document to say that none was due.
   */
  const missingSignature = async ({ eventType, actorId, createdAt }: Event): Promise<SignatureFinding[]> => {
    if (authorityTypes.has(eventType) || mayBeUnsigned.has(eventType) || actorId === null) return [];
    const document = await keys.document(actorId);
    if (document === null) return [unknownKeys(actorId)];
    if (document.actorId !== actorId) return [badSignature(otherDocument)];
    const time = timeOf(createdAt) - ENROLMENT_TOLERANCE_MS;
    return firstKeyAt(document) <= time
      ? [badSignature('the actor had signing keys, so the event must be signed, and it is not')]
      : [{ kind: 'actor', outcome: 'none_due', detail: 'that the actor had no keys stands in an untrusted document' }];
  };

  return async (read: ReadEvent): Promise<SignatureFinding[]> => {
    const { event, payload, actorSigPayload } = read;
    if (event.actorSig !== null) {
      if (authorityTypes.has(event.eventType))
        return [badSignature(`an event of type ${event.eventType} is not signed by an actor`)];
      if (event.authoritySig !== null || event.authorityKeyId !== null)
        return [badSignature('an event that an actor signed has no seal')];
      return [await actorSignature(read, event.signingKeyId, event.actorSig, actorSigPayload ?? payload)];
    }
    const findings = [seal(event), ...(await missingSignature(event))];
    if (event.signingKeyId !== null) findings.push(badSignature('a signing key is named and no signature is there'));
    const { requestor_sig: sig, requestor_signing_key_id: kid } = event.payload;
    const isClosing = event.eventType === 'LEDGER_CLOSED';
    if (isClosing && (sig !== undefined || kid !== undefined || actorSigPayload !== null)) {
      if (typeof sig !== 'string' || typeof kid !== 'string' || actorSigPayload === null) {
        findings.push(badSignature('the request to close was signed, and part of that signature is missing'));
      } else findings.push(await actorSignature(read, kid, sig, actorSigPayload));
    } else if (actorSigPayload !== null)
      findings.push(badSignature('a signed payload is given and no signature is there'));
    return findings;
  };
}

/** Milliseconds since 1970. NaN for a text that is no time: every comparison with it is false. */
function timeOf(text: string): number {
  return parseRfc3339(text) ?? Number.NaN;
}

function heldAt(key: ActorDocumentKey, createdAt: string): boolean {
  const time = timeOf(createdAt);
  if (key.revokedAt === null) return key.status === 'ACTIVE' && time >= timeOf(key.validFrom);
  return time >= timeOf(key.validFrom) && time < timeOf(key.revokedAt);
}

function verifies(verifier: Ed25519Verifier | null, signature: string, digest: Uint8Array): boolean {
  if (verifier === null) return false;
  try {
    return verifier(digest, checkSignatureForm(signature));
  } catch {
    return false;
  }
}
