import type { LedgerEvent } from '../../domain/event/event.ts';
import type { IntegrityIssue } from '../../domain/event/integrity.ts';
import { checkSignatureForm, parseKid, sigDigest } from '../../domain/keys/signature.ts';
import { mapConcurrently } from '../../runtime/collections/map-concurrently.ts';
import { UnreadableRecord } from '../../store/unreadable-record.ts';
import type { Identities } from '../actors/identities.ts';
import type { Authority } from '../authority/authority.ts';
import type { VerifySignature } from '../signatures/verifying-threads.ts';
import type { Walk } from '../walking/walk.ts';

/** Signatures of one walk that are verified at once: enough to keep the verifying threads busy. */
const checksAtOnceMax = 64;

export type SealCheck = (
  walk: Walk,
  events: readonly LedgerEvent[],
  signatures: boolean,
) => Promise<readonly IntegrityIssue[]>;

/**
 * Verifies the authority's seals of stored events and, if asked for, the actors' signatures. `verify` has a lower
 * priority than the signatures of calls.
 */
export function sealCheck(authority: Authority, identities: Identities, verify: VerifySignature): SealCheck {
  const checkSeal = async (event: LedgerEvent): Promise<IntegrityIssue | null> => {
    if (await authority.verifySeal(event, verify)) return null;
    const detail = 'the seal of the authority does not verify over the hash';
    return { eventId: event.id, type: 'invalid_authority_sig', detail };
  };

  /** Verifies the signature with the key's validity at the event's time. */
  const checkSignature = async (event: LedgerEvent): Promise<IntegrityIssue | null> => {
    const wrong = (detail: string): IntegrityIssue => ({ eventId: event.id, type: 'invalid_actor_sig', detail });
    const kid = event.signingKeyId === null ? null : parseKid(event.signingKeyId);
    if (kid === null || kid.actorId !== event.actorId) return wrong('the signing key is none of the actor that signed');
    const key = await identities.key(kid.actorId, event.signingKeyId ?? '').catch((error: unknown) => {
      if (error instanceof UnreadableRecord) return error;
      throw error;
    });
    if (key instanceof UnreadableRecord) return wrong('the stored record of the actor that signed is damaged');
    if (key === undefined) return wrong('the signing key is not known');
    if (event.createdAt < key.validFrom || (key.revokedAt !== null && event.createdAt >= key.revokedAt)) {
      return wrong('the signing key was not valid at the time of the event');
    }
    let signature: Uint8Array;
    try {
      signature = checkSignatureForm(event.actorSig ?? '');
    } catch {
      return wrong('the signature is not 64 bytes in base64');
    }
    const digest = sigDigest(event.eventType, event.ledgerId, event.actorSigPayload ?? event.payload);
    const valid = await identities.verify(key, digest, signature, verify);
    return valid ? null : wrong('the signature does not verify over the signed payload');
  };

  return async (walk, events, signatures) => {
    const checked = events.filter((event) => event.actorSig === null || signatures);
    const issues = await mapConcurrently(checked, checksAtOnceMax, async (event) => {
      const wait = walk.whenFree();
      if (wait !== null) await wait;
      if (event.actorSig === null) return checkSeal(event);
      walk.use(1, event.payload.length);
      walk.verify(1);
      return checkSignature(event);
    });
    return issues.filter((issue) => issue !== null);
  };
}
