import type { CommandKey } from '../../domain/event.ts';
import { sha256Hex } from '../../domain/hash.ts';
import type { Call } from '../call.ts';
import { callerOf } from '../call-caller.ts';

/**
 * The names by which a command is known when it is sent again: its idempotency key, and, for a signed event under header
 * identity, its signed digest. No secret goes with header identity and reads show signatures to others, so such an event counts
 * once for ever (decisions.md, section 4). `digest` is null where no event was signed.
 */
export function commandMarks(call: Call, digest: Buffer | null): readonly CommandKey[] {
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
