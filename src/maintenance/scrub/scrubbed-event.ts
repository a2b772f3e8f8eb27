import type { Event } from '../../client/event.ts';
import type { JsonObject } from '../../client/shapes.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { wrongHash } from '../../domain/event/integrity.ts';
import { parseRow } from '../../domain/event/row.ts';
import type { StoredEntry } from '../../store/ledger-store.ts';
import type { Finding } from './finding.ts';

/** The event of a row. Returns a finding if the row is no event, or is an event of another place. */
export function eventOf(ledgerId: string, entry: StoredEntry): LedgerEvent | Finding {
  const unreadable = (detail: string): Finding => ({ ledgerId, seq: entry.seq, type: 'unreadable_row', detail });
  let event: LedgerEvent;
  try {
    event = parseRow(entry.row);
  } catch (error) {
    return unreadable(error instanceof Error ? error.message : String(error));
  }
  const isHere = event.seq === entry.seq && event.ledgerId === ledgerId;
  return isHere ? event : unreadable(`the event stored there is seq ${event.seq} of ledger ${event.ledgerId}`);
}

/**
 * The event as a client reads it. Returns null if its payload was damaged, so that nothing can be said of the event but
 * that its hash is wrong.
 */
export function asRead(event: LedgerEvent): Event | null {
  if (wrongHash(event) !== null) return null;
  const { id, ledgerId, seq, eventType, actorId, actorType, createdAt, causedByHash, master } = event;
  const { actorSig, signingKeyId, contentHash, hash, authoritySig, authorityKeyId } = event;
  return {
    id,
    ledgerId,
    seq,
    masterId: master?.id ?? null,
    masterSeq: master?.seq ?? null,
    eventType,
    actorId,
    actorType,
    payload: JSON.parse(event.payload) as JsonObject,
    hash,
    contentHash,
    causedByHash,
    actorSig,
    signingKeyId,
    actorSigPayload: event.actorSigPayload === null ? null : (JSON.parse(event.actorSigPayload) as JsonObject),
    authoritySig,
    authorityKeyId,
    createdAt,
  };
}
