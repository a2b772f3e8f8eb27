import type { LedgerEvent } from '../../domain/event/event.ts';
import { names } from '../../domain/event/projection.ts';
import { entriesWithin } from '../reading/event-chunk.ts';
import { readEvent } from '../reading/stored-event.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import type { ReaderAccess } from './reader-access.ts';

/**
 * The newest event of what is followed up to `throughSeq` that the reader may read; null if there is none that can be
 * parsed.
 */
export async function newestReadable(
  store: BoundedLedgers,
  ledgerId: string,
  masterId: string | null,
  access: ReaderAccess,
  throughSeq: number,
): Promise<LedgerEvent | null> {
  const bounds = { low: 0, high: throughSeq };
  for await (const { entries } of entriesWithin(store, placeOf(ledgerId, masterId, access), bounds, true, 1))
    for (const entry of entries) {
      const event = readEvent(entry, { ledgerId, scopes: null }, []);
      if (event !== null && access.covers(event)) return event;
    }
  return null;
}

function placeOf(ledgerId: string, masterId: string | null, access: ReaderAccess) {
  if (masterId !== null) return { ledgerId, scopes: [names.masterEvents(masterId)] };
  if (access.isWhole) return { ledgerId, scopes: null };
  return { ledgerId, scopes: [names.ownEvents(ledgerId), ...access.masterIds.map(names.masterEvents)] };
}
