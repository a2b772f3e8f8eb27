import { sigDigest } from '../../domain/digest.ts';
import type { LedgerEvent } from '../../domain/event.ts';
import type { IntegrityIssue } from '../../domain/integrity.ts';
import { checkSignatureForm, parseKid } from '../../domain/signature.ts';
import type { Identities } from '../identity/identities.ts';
import type { Authority } from '../signatures/authority.ts';

/** Checks authority seals, and on demand actor signatures, of stored events. */
export class SealCheck {
  readonly #authority: Authority;
  readonly #identities: Identities;

  constructor(authority: Authority, identities: Identities) {
    this.#authority = authority;
    this.#identities = identities;
  }

  async check(events: readonly LedgerEvent[], signatures: boolean): Promise<IntegrityIssue[]> {
    const checks: Promise<IntegrityIssue | null>[] = [];
    for (const event of events) {
      if (event.actorSig === null) checks.push(this.#seal(event));
      else if (signatures) checks.push(this.#signature(event));
    }
    const issues = await Promise.all(checks);
    return issues.filter((issue) => issue !== null);
  }

  async #seal(event: LedgerEvent): Promise<IntegrityIssue | null> {
    if (await this.#authority.verifySeal(event)) return null;
    return {
      eventId: event.id,
      type: 'invalid_authority_sig',
      detail: 'the seal of the authority does not verify over the hash',
    };
  }

  /** Under the key as of the event's time. */
  async #signature(event: LedgerEvent): Promise<IntegrityIssue | null> {
    const wrong = (detail: string): IntegrityIssue => ({ eventId: event.id, type: 'invalid_actor_sig', detail });
    const kid = event.signingKeyId === null ? null : parseKid(event.signingKeyId);
    if (kid === null || kid.actorId !== event.actorId) return wrong('the signing key is none of the actor that signed');
    const key = await this.#identities.key(kid.actorId, event.signingKeyId ?? '');
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
    const valid = await this.#identities.verify(key, digest, signature);
    return valid ? null : wrong('the signature does not verify over the signed payload');
  }
}
