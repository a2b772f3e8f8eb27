import { isUuid } from '../../domain/values/uuid-form.ts';
import { ownText } from '../../runtime/collections/own-text.ts';
import { type AccessRecord, cutPath } from '../../service/audit/access-record.ts';
import type { Caller } from '../../service/calls/call.ts';
import type { IncomingCall } from '../call/incoming-call.ts';
import type { RunningCall } from '../call/running-call.ts';

/** For a master or an organization that belongs to no ledger. */
const noLedger = [null] as const;

/**
 * Whether a refusal certainly concerns the caller that the call names. An identity header is only a claim: until an
 * entity's signature is verified, the call may come from anybody and leaves nothing in the entity's history.
 */
export function isProven(call: RunningCall, caller: Caller, status: number): boolean {
  return !caller.mustSign || (call.isVerified && status !== 401);
}

/** Whether a refused call may name a ledger in a request that was not read yet. */
export function isUnread({ request, endpoint }: RunningCall): boolean {
  return request === null && (endpoint.names !== null || endpoint.ledgerField !== null);
}

/** How a call ended. `at` is Unix time, ms. */
interface Outcome {
  readonly status: number;
  readonly isRefused: boolean;
  readonly at: number;
}

/**
 * Returns the records of a call, one for each ledger that it names. Returns a promise if a ledger must be looked up;
 * the answer waits for it only if too many are looked up (`lookUpsMax`).
 */
export function recordsOf(
  call: RunningCall,
  { actorId, apiKeyId }: Caller,
  incoming: IncomingCall,
  { status: responseStatus, isRefused, at }: Outcome,
): readonly AccessRecord[] | Promise<readonly AccessRecord[]> {
  const naming = nameLedgers(call, isRefused);
  if (naming === undefined && call.ledgers === null) return [];
  const { verb: method, path: whole } = incoming.equivalent(call.request);
  const path = cutPath(whole);
  const { requestId } = call;
  const made = (): AccessRecord[] => {
    if (call.ledgers === null) return [];
    const ledgers = call.ledgers.size === 0 ? noLedger : [...call.ledgers];
    call.ledgers = null;
    return ledgers.map((ledgerId) => ({ actorId, apiKeyId, ledgerId, method, path, responseStatus, at, requestId }));
  };
  if (naming === undefined) return made();
  // The request is released: requests are large, and many records may wait for a slow store. A stream needs it for its
  // next record. The parsed fields are kept if the call was answered: its handler may still run and use them.
  if (!call.endpoint.rule.live) call.request = null;
  if (!call.answered) call.parsed = null;
  return naming.then(made);
}

/** Returns a promise if a ledger must be looked up. */
function nameLedgers(call: RunningCall, isRefused: boolean): Promise<void> | undefined {
  const { endpoint, request } = call;
  if (request === null) return undefined;
  if (endpoint.ledgerField !== null) {
    const ledgerId = (request as unknown as Readonly<Record<string, unknown>>)[endpoint.ledgerField.localName];
    if (typeof ledgerId === 'string' && isUuid(ledgerId)) call.named(ownText(ledgerId));
  }
  return endpoint.names?.(request, call, isRefused);
}
