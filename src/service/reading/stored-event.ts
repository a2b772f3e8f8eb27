import { LedgerError } from '../../domain/errors.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import type { IntegrityIssue } from '../../domain/event/integrity.ts';
import { scopesOf } from '../../domain/event/projection.ts';
import { parseRow } from '../../domain/event/row.ts';
import type { StoredEntry } from '../../store/ledger-store.ts';

/** Where events are read from: a whole ledger, or some of its scopes. */
export interface EventPlace {
  readonly ledgerId: string;
  /** null for the whole ledger. */
  readonly scopes: readonly string[] | null;
}

/**
 * Parses an event. Returns null and adds an issue if the row cannot be read, or if the index of a scope lists an event
 * that is not of that scope: a reader of the scope may have no right to it.
 */
export function readEvent(entry: StoredEntry, place: EventPlace, issues: IntegrityIssue[]): LedgerEvent | null {
  const { ledgerId, scopes } = place;
  const refuse = (type: IntegrityIssue['type'], detail: string, eventId = noEvent): null => {
    issues.push({ eventId, type, detail });
    return null;
  };
  try {
    const event = parseRow(entry.row);
    if (event.seq !== entry.seq || event.ledgerId !== ledgerId)
      return refuse('hash_mismatch', `the event stored at seq ${entry.seq} belongs elsewhere`, event.id);
    if (scopes === null || isOfSome(event, scopes)) return event;
    return refuse('broken_link', `the event at seq ${entry.seq} is listed here and does not belong here`);
  } catch (error) {
    if (error instanceof LedgerError) throw error;
    return refuse('hash_mismatch', `what is stored at seq ${entry.seq} is no event any more`);
  }
}

/** The event id of an issue without an event. */
export const noEvent = '00000000-0000-0000-0000-000000000000';

/** The issue of a seq at which nothing is stored. */
export function missing(seq: number): IntegrityIssue {
  return { eventId: noEvent, type: 'missing_event', detail: `the event at seq ${seq} is missing` };
}

/** A damaged payload that is no JSON belongs to no scope. */
function isOfSome(event: LedgerEvent, scopes: readonly string[]): boolean {
  try {
    return scopesOf(event).some((scope) => scopes.includes(scope));
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
