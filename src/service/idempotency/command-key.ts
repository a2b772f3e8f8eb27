import { invalidHeader } from '../../domain/errors.ts';
import type { CommandKey } from '../../domain/event/event.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { toHex } from '../../domain/keys/hex.ts';
import { sigDigest } from '../../domain/keys/signature.ts';
import { type Command, commandEventType, type UnkeyedCommand } from '../../domain/ledger/command.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';

export const idempotencyKeyForm = /^[ -~]{1,255}$/;

/**
 * The id of a command key, hex. The length prefix keeps two different pairs from giving the same text. Throws
 * `invalid_argument` unless `key` has 1 to 255 printable ASCII characters.
 */
export function commandId(actorId: string, key: string): string {
  if (!idempotencyKeyForm.test(key)) {
    throw invalidHeader('Idempotency-Key', '1 to 255 printable ASCII characters');
  }
  return sha256Hex(`svc-command-v1\0${actorId.length}\0${actorId}${key}`);
}

/** The command key of a call with an idempotency key that writes to an existing ledger. Throws as `commandId` does. */
export function commandKeyOf(actorId: string, key: string, fingerprint: string): CommandKey {
  return { id: commandId(actorId, key), fingerprint, permanent: false };
}

const writtenOnceForGood: ReadonlySet<Command['kind']> = new Set(['create_master', 'append_event', 'close_master']);

/**
 * The keys by which a command that is sent again is recognized: its idempotency key and, for a signed event under
 * header identity, its signed digest. Reads show signatures to others, and header identity has no other secret. So such
 * an event is written once for good: otherwise a reader could send it again.
 */
export function commandKeysOf(
  call: Pick<Call, 'caller' | 'commandKey'>,
  command: UnkeyedCommand,
): readonly CommandKey[] {
  const { commandKey } = call;
  const { kind, ledgerId, signature } = command;
  const { actorId, via } = callerOf(call);
  const keys = commandKey === null ? [] : [commandKey];
  if (via !== 'entity_header' || signature === null || !writtenOnceForGood.has(kind)) return keys;
  const fingerprint = toHex(sigDigest(commandEventType(command), ledgerId, signature.signedForm));
  const id = sha256Hex(`signed\0${actorId}\0${fingerprint}`).slice(0, 32);
  return [...keys, { id, fingerprint, permanent: true }];
}
