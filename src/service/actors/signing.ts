import { LedgerError } from '../../domain/errors.ts';
import { checkSignatureForm, sigDigest } from '../../domain/keys/signature.ts';
import type { CommandSignature } from '../../domain/ledger/command.ts';
import type { Call, Caller, CallSignature, StatedInput } from '../calls/call.ts';
import { callerOf, entitySignatureRequired } from '../calls/caller.ts';
import type { ActorRecord, SigningKeyRecord } from './actor-record.ts';
import type { Identities } from './identities.ts';
import { type SigningInput, signatureDetails, undisclosedDetails } from './signature-details.ts';
import { isInUse } from './signing-keys.ts';

/**
 * Verifies the caller's signature over one of the forms. Returns null if the caller sent none and need not: by the rule
 * 'if_keyed' an actor that has, or ever had, a key must sign. Throws `signature_required`, `unknown_signing_key`,
 * `signing_key_revoked` or `invalid_signature`.
 */
export async function checkCallSignature(
  identities: Identities,
  call: Pick<Call, 'caller' | 'signature' | 'markVerified'>,
  rule: 'if_keyed' | 'optional',
  input: SigningInput,
): Promise<CommandSignature | null> {
  const caller = callerOf(call);
  const actor = identities.known(caller.actorId) ?? (await identities.recent(caller.actorId));
  if (actor === null) throw new Error(`actor ${caller.actorId} is calling but has no record`);
  const sent = call.signature;
  if (sent === null) {
    if (rule === 'if_keyed' && (actor.keys.length > 0 || caller.mustSign)) throw signatureRequired(caller, actor);
    return null;
  }
  const signature = await verifyForms(identities, actor, sent, input, explanationFor(caller, input));
  call.markVerified();
  return signature;
}

const nothingStated: StatedInput = { digest: null, canonical: null };

/** How `invalid_signature` is explained. */
interface Explanation {
  readonly message: string;
  readonly details: typeof signatureDetails;
}

const notVerified =
  'X-Actor-Sig does not verify: sign SHA-256 of event type, 0x00, ledger id, 0x00 and the canonical JSON';
const expected: Explanation = { message: `${notVerified} given in details.`, details: signatureDetails };
const undisclosed: Explanation = { message: `${notVerified}.`, details: undisclosedDetails };

/** Anybody can send the id of an entity. Facts of the ledger are shown only to a caller that has proved who it is. */
function explanationFor(caller: Caller, input: SigningInput): Explanation {
  return caller.mustSign && input.isAllSent !== true ? undisclosed : expected;
}

/**
 * Verifies a signature with a cached actor, and once more with the stored one if another node may have changed the key.
 * Throws `invalid_signature`, `unknown_signing_key` and `signing_key_revoked` too.
 */
export function verifyForms(
  identities: Identities,
  recent: ActorRecord,
  sent: CallSignature,
  input: SigningInput,
  explanation: Explanation,
): Promise<CommandSignature> {
  const { eventType, ledgerId, forms } = input;
  const check = async (actor: ActorRecord): Promise<CommandSignature> => {
    const { key, signature } = findKey(actor, sent);
    const bytes = checkSignatureForm(signature);
    for (const signedForm of forms) {
      const digest = sigDigest(eventType, ledgerId, signedForm);
      if (await identities.verify(key, digest, bytes)) return { signature, keyId: key.kid, signedForm };
    }
    const details = explanation.details(input, key.kid, sent.stated ?? nothingStated);
    throw new LedgerError('invalid_signature', explanation.message, { header: 'X-Actor-Sig', ...details });
  };
  return check(recent).catch(async (error: unknown) => {
    const isNews = error instanceof LedgerError && (error.code === 'unknown_signing_key' || sent.keyId === null);
    if (!isNews) throw error;
    return check((await identities.reload(recent.actorId)) ?? recent);
  });
}

function signatureRequired(caller: Caller, actor: ActorRecord): LedgerError {
  const send = 'send X-Signing-Key-ID and X-Actor-Sig.';
  const allRevoked = actor.keys.length > 0 && !actor.keys.some(isInUse);
  if (caller.mustSign && !allRevoked) return entitySignatureRequired();
  return new LedgerError(
    'signature_required',
    allRevoked
      ? `This actor’s signing keys are all revoked, and the call must be signed: enrol a new one, then ${send}`
      : `This actor has signing keys, so the call must be signed: ${send}`,
    { header: 'X-Actor-Sig' },
  );
}

/** The key that is named, or the preferred one. Throws what `checkCallSignature` throws, but `invalid_signature`. */
function findKey(actor: ActorRecord, sent: CallSignature): { key: SigningKeyRecord; signature: string } {
  // An actor without keys need not sign: `signature_required` would mislead it.
  if (actor.keys.length === 0) throw unknownKey(sent);
  if (sent.signature === null) {
    throw new LedgerError('signature_required', 'X-Signing-Key-ID came without X-Actor-Sig: send the signature too.', {
      header: 'X-Actor-Sig',
    });
  }
  const key = actor.keys.find(sent.keyId === null ? (held) => held.preferred : (held) => held.kid === sent.keyId);
  if (key === undefined) throw unknownKey(sent);
  if (!isInUse(key)) {
    throw new LedgerError('signing_key_revoked', 'The signing key is revoked: sign with another key.', {
      header: 'X-Signing-Key-ID',
      signing_key_id: key.kid,
      ...(key.revokedAt === null ? {} : { revoked_at: key.revokedAt }),
    });
  }
  return { key, signature: sent.signature };
}

function unknownKey(sent: CallSignature): LedgerError {
  return new LedgerError(
    'unknown_signing_key',
    sent.keyId === null
      ? 'This actor has no active key: enrol one, or name the key in X-Signing-Key-ID.'
      : 'X-Signing-Key-ID names no key of this actor: enrol it first.',
    { header: 'X-Signing-Key-ID' },
  );
}
