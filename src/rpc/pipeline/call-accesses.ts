import { isUuid } from '../../domain/uuid.ts';
import { type AccessRecord, cutPath, ownText } from '../../service/audit/access-record.ts';
import type { Caller } from '../../service/call.ts';
import type { IncomingCall } from '../call/incoming-call.ts';
import type { RunningCall } from '../call/running-call.ts';

/** A master or organization under no ledger. */
const noLedger = [null] as const;

/**
 * Whether it was the caller who was refused. An identity header says who is meant: of an entity that must sign, a call
 * that was refused before its signature was verified, or for its signature, may come from anybody, and leaves nothing
 * in the entity's history.
 */
export function isProven(call: RunningCall, caller: Caller, status: number): boolean {
  return !caller.mustSign || (call.isVerified && status !== 401);
}

/** Whether a refused call may name something by a request that nobody has read. */
export function isUnread({ request, endpoint }: RunningCall): boolean {
  return request === null && (endpoint.names !== null || endpoint.ledgerField !== null);
}

/** How a call ended, and when: milliseconds since 1970. */
export interface Outcome {
  readonly status: number;
  readonly isRefused: boolean;
  readonly at: number;
}

/**
 * The records of a call, one for each ledger that it names; a promise where one is still looked up, behind the answer.
 */
export function recordsOf(
  call: RunningCall,
  caller: Caller,
  exchange: IncomingCall,
  { status, isRefused, at }: Outcome,
): readonly AccessRecord[] | Promise<readonly AccessRecord[]> {
  const naming = nameLedgers(call, isRefused);
  if (naming === undefined && call.ledgers === null) return [];
  const { verb: method, path: whole } = exchange.equivalent(call.request);
  const path = cutPath(whole);
  const { actorId, apiKeyId } = caller;
  const { requestId } = call;
  const made = (): AccessRecord[] => {
    if (call.ledgers === null) return [];
    const ledgers = call.ledgers.size === 0 ? noLedger : [...call.ledgers];
    return ledgers.map((ledgerId) => ({
      actorId,
      apiKeyId,
      ledgerId,
      method,
      path,
      responseStatus: status,
      at,
      requestId,
    }));
  };
  if (naming === undefined) return made();
  // Requests are large, and many may wait for a store that is slow. A handler that was answered for may still be at its
  // own.
  call.request = null;
  if (!call.answered) call.parsed = null;
  return naming.then(made);
}

/** Notes which ledgers a call names by its request. */
function nameLedgers(call: RunningCall, isRefused: boolean): Promise<void> | undefined {
  const { endpoint, request } = call;
  if (request === null) return undefined;
  if (endpoint.ledgerField !== null) {
    const ledgerId = (request as unknown as Readonly<Record<string, unknown>>)[endpoint.ledgerField.localName];
    if (typeof ledgerId === 'string' && isUuid(ledgerId)) call.named(ownText(ledgerId));
  }
  return endpoint.names?.(request, call, isRefused);
}
