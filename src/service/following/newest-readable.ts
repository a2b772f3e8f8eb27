import { batchBytesMax, largestBatchEvents } from '../../actors/bounds.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { charsOf } from '../../store/pages.ts';
import { entriesWithin } from '../reading/event-chunk.ts';
import { readEvent } from '../reading/stored-event.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import type { ReaderAccess } from './reader-access.ts';

/** The rows of a batch of several events have fewer characters. Its bound in bytes is one of estimates. */
const batchCharsMax = 4 * batchBytesMax;

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
  if (access !== null && access.scopes !== null)
    for await (const event of newestBatch(store, ledgerId, throughSeq))
      if (access.covers(event)) return newestShown(event);
  const place = { ledgerId, scopes: access?.scopes ?? null };
  const bounds = { low: 0, high: throughSeq };
  for await (const { entries } of entriesWithin(store, place, bounds, true, 1))
    for (const entry of entries) {
      const event = readEvent(entry, { ledgerId, scopes: null }, []);
      if (event !== null && (access?.covers(event) ?? true)) return newestShown(event);
    }
  return null;
}

/**
 * The events up to `throughSeq` that may belong to the newest batch of the ledger, newest first: followers get them,
 * although it is possible that no scope lists them before the next claim.
 */
export async function* newestBatch(
  store: BoundedLedgers,
  ledgerId: string,
  throughSeq: number,
): AsyncGenerator<LedgerEvent> {
  const place = { ledgerId, scopes: null };
  const bounds = { low: Math.max(0, throughSeq + 1 - largestBatchEvents), high: throughSeq };
  let chars = 0;
  for await (const { entries } of entriesWithin(store, place, bounds, true, largestBatchEvents)) {
    for (const entry of entries) {
      const event = readEvent(entry, place, []);
      if (event !== null) yield event;
    }
    chars += charsOf(entries);
    if (chars > batchCharsMax) return;
  }
}
