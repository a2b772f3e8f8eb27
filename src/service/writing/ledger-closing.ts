import type { LedgerFacts } from '../../domain/event/facts.ts';
import { ledgerClosedSignedForms } from '../../domain/event/service-events.ts';
import type { Identities } from '../actors/identities.ts';
import { checkCallSignature } from '../actors/signing.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import type { OnceSubmitter } from '../idempotency/submit-once.ts';

export type LedgerClosing = ReturnType<typeof ledgerClosing>;

/**
 * Closes ledgers that the caller may read. `rule` 'optional': a signature is not required, and verified if it is sent.
 * An entity that calls by its header has signed the whole request then, so there is no event signature to verify.
 */
export function ledgerClosing(identities: Identities, commands: OnceSubmitter) {
  return async (call: Call, ledger: LedgerFacts, rule: 'if_keyed' | 'optional') => {
    const { ledgerId } = ledger;
    const { actorId, via } = callerOf(call);
    const requestSigned = rule === 'optional' && via === 'entity_header';
    const options = { ledgerOf: async () => ledgerId, isSignedEvent: !requestSigned };
    await commands.submitOnce(call, options, async () => {
      const eventType = 'LEDGER_CLOSED';
      const forms = ledgerClosedSignedForms(ledger, actorId);
      const signature = requestSigned
        ? null
        : await checkCallSignature(identities, call, rule, { eventType, ledgerId, forms });
      return { kind: 'close_ledger', ledgerId, signature, signatureRule: rule };
    });
    return { ledgerId, status: 'CLOSED' };
  };
}
