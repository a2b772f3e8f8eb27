import type { Directory } from '../../actors/routing/directory.ts';
import type { LedgerFacts } from '../../domain/event/ledger-facts.ts';
import { ledgerClosedSignedForms } from '../../domain/event/service-events.ts';
import type { Identities } from '../actors/identities.ts';
import { checkCallSignature } from '../actors/signing.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/call-caller.ts';
import { commandKeys } from './command-keys.ts';
import type { Replays } from './replays.ts';

/**
 * Closes a ledger that the caller may read. `rule` 'optional': a signature is not required, and verified if it is sent.
 * An entity that calls by its header has signed the whole request then, so there is no event signature to verify.
 */
export type LedgerClosing = (
  call: Call,
  ledger: LedgerFacts,
  rule: 'if_keyed' | 'optional',
) => Promise<{ ledgerId: string; status: string }>;

/** Closes ledgers of all types. */
export function ledgerClosing(identities: Identities, directory: Directory, replays: Replays): LedgerClosing {
  return async (call, ledger, rule) => {
    const { ledgerId } = ledger;
    const { actorId, actorType, via } = callerOf(call);
    const requestSigned = rule === 'optional' && via === 'entity_header';
    const close = async () => {
      const eventType = 'LEDGER_CLOSED';
      const forms = ledgerClosedSignedForms(ledger, actorId);
      const signature = requestSigned
        ? null
        : await checkCallSignature(identities, call, rule, { eventType, ledgerId, forms });
      return replays.carryOut(directory, {
        kind: 'close_ledger',
        ledgerId,
        actorId,
        actorType,
        signature,
        signatureRule: rule,
        commandKeys: commandKeys(call, null),
        deadline: call.deadline,
      });
    };
    const outcome = await (requestSigned ? close() : replays.orElseSigned(call, async () => ledgerId, close));
    if (outcome.replayed) call.markReplayed();
    return { ledgerId, status: 'CLOSED' };
  };
}
