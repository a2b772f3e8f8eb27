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
  try {
    const event = parseRow(entry.row);
    if (event.seq !== entry.seq || event.ledgerId !== ledgerId) {
      issues.push({
        eventId: event.id,
        type: 'hash_mismatch',
        detail: `the event stored at seq ${entry.seq} belongs elsewhere`,
      });
      return null;
    }
    if (scopes === null || isOfSome(event, scopes)) return event;
    issues.push({
      eventId: noEvent,
      type: 'broken_link',
      detail: `the event at seq ${entry.seq} is listed here and does not belong here`,
    });
    return null;
  } catch (error) {
    if (error instanceof LedgerError) throw error;
    issues.push({
      eventId: noEvent,
      type: 'hash_mismatch',
      detail: `what is stored at seq ${entry.seq} is no event any more`,
    });
    return null;
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
