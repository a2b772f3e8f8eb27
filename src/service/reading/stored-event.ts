import { LedgerError } from '../../domain/errors.ts';
import type { LedgerEvent } from '../../domain/event.ts';
import type { IntegrityIssue } from '../../domain/integrity.ts';
import { parseRow } from '../../domain/row.ts';
import type { StoredEntry } from '../../store/ledger-store.ts';

/** null, and an issue, for a row that cannot be read or shown any more. */
export function readEvent(entry: StoredEntry, ledgerId: string, issues: IntegrityIssue[]): LedgerEvent | null {
  try {
    const event = parseRow(entry.row);
    if (event.seq === entry.seq && event.ledgerId === ledgerId) return event;
    issues.push({
      eventId: event.id,
      type: 'hash_mismatch',
      detail: `the event stored at seq ${entry.seq} belongs elsewhere`,
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

/** Stands where an issue can name no event. */
export const noEvent = '00000000-0000-0000-0000-000000000000';

/** The issue of a seq at which nothing is stored. */
export function missing(seq: number): IntegrityIssue {
  return { eventId: noEvent, type: 'missing_event', detail: `the event at seq ${seq} is missing` };
}
