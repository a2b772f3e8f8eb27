import type { CommandKey } from '../../domain/event/event.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/call-caller.ts';

/**
 * The command keys by which a resubmitted command is recognized: its idempotency key and, for a signed event under
 * header identity, its signed digest. Header identity has no secret, and reads show signatures to others, so such an
 * event is written once for good: otherwise a reader could send it again. `digest` is null if no event was signed.
 */
export function commandKeys(call: Call, digest: Buffer | null): readonly CommandKey[] {
  const caller = callerOf(call);
  if (caller.via !== 'entity_header' || digest === null) return call.command === null ? none : [call.command];
  const hex = digest.toString('hex');
  const signed: CommandKey = {
    id: sha256Hex(`signed\0${caller.actorId}\0${hex}`).slice(0, 32),
    fingerprint: hex,
    permanent: true,
  };
  return call.command === null ? [signed] : [call.command, signed];
}

const none: readonly CommandKey[] = [];
