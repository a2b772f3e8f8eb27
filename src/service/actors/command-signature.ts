import { LedgerError } from '../../domain/errors.ts';
import { checkSignatureForm, sigDigest } from '../../domain/keys/signature.ts';
import { type Command, commandEventType } from '../../domain/ledger/command.ts';
import type { Identities } from './identities.ts';

/**
 * Verifies the actor's signature of a command that another node sent. That node has verified it too, but an event with
 * an invalid signature would stay in the ledger for good. Revocation is not checked here: the ledger actor checks it,
 * and still answers a command that was written before the revocation. Rejects with `unknown_signing_key` or
 * `invalid_signature`.
 */
export async function checkCommandSignature(identities: Identities, command: Command): Promise<void> {
  const { signature, actorId, ledgerId } = command;
  if (signature === null) return;
  const key = await identities.key(actorId, signature.keyId);
  if (key === undefined)
    throw new LedgerError('unknown_signing_key', 'X-Signing-Key-ID names no key of this actor: enrol it first.');
  const digest = sigDigest(commandEventType(command), ledgerId, signature.signedForm);
  if (await identities.verify(key, digest, checkSignatureForm(signature.signature))) return;
  throw new LedgerError(
    'invalid_signature',
    'The signature does not verify at the node that runs the ledger; nothing was written, send the call again.',
    { signing_key_id: key.kid },
  );
}
