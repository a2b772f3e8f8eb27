import type { Directory } from '../../actors/directory.ts';
import type { LedgerFacts } from '../../domain/ledger-facts.ts';
import { ledgerClosedSignedForms } from '../../domain/service-events.ts';
import type { Call } from '../call.ts';
import { callerOf } from '../call-caller.ts';
import type { Identities } from '../identity/identities.ts';
import { checkCallSignature } from '../identity/signing.ts';
import { commandMarks } from './command-marks.ts';

/**
 * Closes a ledger that the caller may see. `rule` 'optional': a signature is not asked for, and is checked where it is sent; an entity that
 * calls by its header has signed the request as a whole, so that there is nothing to check here.
 */
export async function closeLedger(
  identities: Identities,
  directory: Directory,
  call: Call,
  ledger: LedgerFacts,
  rule: 'if_keyed' | 'optional',
): Promise<{ ledgerId: string; status: string }> {
  const caller = callerOf(call);
  const requestSigned = rule === 'optional' && caller.via === 'entity_header';
  const signature = requestSigned
    ? null
    : await checkCallSignature(identities, call, rule, {
        eventType: 'LEDGER_CLOSED',
        ledgerId: ledger.ledgerId,
        forms: ledgerClosedSignedForms(ledger, caller.actorId),
      });
  const outcome = await directory.submit({
    kind: 'close_ledger',
    ledgerId: ledger.ledgerId,
    actorId: caller.actorId,
    actorType: caller.actorType,
    signature,
    signatureRule: rule,
    marks: commandMarks(call, null),
    deadline: call.deadline,
  });
  if (outcome.replayed) call.markReplayed();
  return { ledgerId: ledger.ledgerId, status: 'CLOSED' };
}
