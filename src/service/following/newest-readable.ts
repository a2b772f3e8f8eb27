import type { LedgerEvent } from '../../domain/event/event.ts';
import { entriesWithin } from '../reading/event-chunk.ts';
import { readEvent } from '../reading/stored-event.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import type { ReaderAccess } from './reader-access.ts';

/** The newest event that a follower was shown, or was told of. */
export type NewestShown = Pick<LedgerEvent, 'seq' | 'hash' | 'contentHash' | 'master'>;

/** An event without its texts, which are large and would be kept as long as a follower waits. */
export function newestShown({ seq, hash, contentHash, master }: LedgerEvent): NewestShown {
  return { seq, hash, contentHash, master };
}

/**
 * The newest event of what is followed up to `throughSeq` that the reader may read; null if there is none that can be
 * parsed. `access` null: for a reader of every event.
 */
export async function newestReadable(
  store: BoundedLedgers,
  ledgerId: string,
  access: ReaderAccess | null,
  throughSeq: number,
): Promise<NewestShown | null> {
  const place = { ledgerId, scopes: access?.scopes ?? null };
  const bounds = { low: 0, high: throughSeq };
  for await (const { entries } of entriesWithin(store, place, bounds, true, 1))
    for (const entry of entries) {
      const event = readEvent(entry, { ledgerId, scopes: null }, []);
      if (event !== null && (access?.covers(event) ?? true)) return newestShown(event);
    }
  return null;
}
