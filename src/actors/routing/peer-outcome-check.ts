import type { LedgerEvent } from '../../domain/event/event.ts';
import { wrongHash } from '../../domain/event/integrity.ts';
import { genesisPayload } from '../../domain/event/service-events.ts';
import { type Command, commandEventType, commandMaster } from '../../domain/ledger/command.ts';
import type { CommandOutcome } from '../inbox/outcome.ts';

/**
 * What is wrong with an outcome that another node gave, or null. A node that answers with another event is faulty or an
 * impostor. Whether the event is in the log is not checked here.
 */
export function outcomeFault(command: Command, { event, replayed }: CommandOutcome): string | null {
  if (event.ledgerId !== command.ledgerId) return 'it is of another ledger';
  if (event.eventType !== commandEventType(command)) return 'it is of another type';
  if (wrongHash(event) !== null) return 'its hashes are not those of its content';
  if (replayed) return hasCommandKey(command, event) ? null : 'it was written by another command';
  if (event.actorId !== (command.kind === 'open_ledger' ? null : command.actorId)) return 'it is of another actor';
  // The first event of a ledger has no command key: its id is the ledger's own.
  if (command.kind === 'open_ledger')
    return event.payload === genesisPayload(command.facts) ? null : 'it has another payload';
  if (command.commandKeys.length > 0 && !hasCommandKey(command, event)) return 'it was written by another command';
  if ((event.master?.id ?? null) !== commandMaster(command)) return 'it is of another master';
  if (event.actorSig !== signatureOf(command)) return 'it has another signature';
  return payloadFault(command, event);
}

/** An event that was written before can only be recognised by its key. */
function hasCommandKey({ commandKeys }: Command, { commands }: LedgerEvent): boolean {
  return commandKeys.some(({ id, fingerprint }) =>
    commands.some((written) => written.id === id && written.fingerprint === fingerprint),
  );
}

/** The authority seals the close of a ledger. The caller's signature is in the payload. */
function signatureOf(command: Command): string | null {
  return command.kind === 'close_ledger' ? null : (command.signature?.signature ?? null);
}

/** The owner adds facts to other payloads. The payload of an append is sent to it complete. */
function payloadFault(command: Command, { payload, causedByHash }: LedgerEvent): string | null {
  if (command.kind === 'append_event')
    return payload === command.payload && causedByHash === command.causedByHash ? null : 'it has another payload';
  const given = givenFields(command);
  if (given.length === 0) return null;
  const written = fieldsOf(payload);
  return given.every(([name, value]) => written?.[name] === value) ? null : 'it has another payload';
}

function fieldsOf(payload: string): Readonly<Record<string, unknown>> | null {
  try {
    return JSON.parse(payload) as Readonly<Record<string, unknown>> | null;
  } catch {
    return null;
  }
}

function givenFields(command: Command): readonly (readonly [name: string, value: string])[] {
  switch (command.kind) {
    case 'create_master':
      return [
        ['business_ref', command.businessRef],
        ['scope', command.scope],
      ];
    case 'grant':
      return [
        ['link_id', command.linkId],
        ['delegate_actor_id', command.delegateActorId],
        ['role', command.role],
      ];
    case 'revoke':
      return command.linkId === null
        ? [['delegate_actor_id', command.delegateActorId ?? '']]
        : [['link_id', command.linkId]];
    default:
      return [];
  }
}
