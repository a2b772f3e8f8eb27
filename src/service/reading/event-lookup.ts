import type { LedgerEvent } from '../../domain/event/event.ts';
import { pageCharsMax } from '../../store/pages.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import { seqBounds } from './event-bounds.ts';
import { checkEventQuery, type EventStart } from './event-query.ts';
import { walkEvents } from './event-walk.ts';
import { type EventPlace, readEvent } from './stored-event.ts';

/** Single events, read as the event lists read them. Hashes are not checked. */

/** null: the ledger has no event at this seq, or none that can be read. No store is asked for a seq beyond the head. */
export async function eventAt(store: BoundedLedgers, ledgerId: string, seq: number): Promise<LedgerEvent | null> {
  const head = await store.head(ledgerId);
  if (head === null || seq > head.seq) return null;
  const [entry] = await store.read(ledgerId, seq, 1, pageCharsMax);
  return entry?.seq === seq ? readEvent(entry, { ledgerId, scopes: null }, []) : null;
}

/** null: the ledger has no event of this id, or none that can be read. */
export async function eventWithId(
  store: BoundedLedgers,
  ledgerId: string,
  eventId: string,
): Promise<LedgerEvent | null> {
  const head = await store.head(ledgerId);
  if (head === null) return null;
  const place: EventPlace = { ledgerId, scopes: null };
  const query = checkEventQuery({ eventId });
  const { low, high } = await seqBounds(store, ledgerId, head.seq, query);
  for (let start: EventStart | null = { seq: low, skip: 0 }; start !== null; ) {
    const { events, next }: { readonly events: readonly LedgerEvent[]; readonly next: EventStart | null } =
      await walkEvents(store, place, query, { low: start.seq, high });
    const [event] = events;
    if (event !== undefined) return event;
    start = next;
  }
  return null;
}
