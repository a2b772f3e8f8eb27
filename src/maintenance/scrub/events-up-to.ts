import type { Event } from '../../client/event.ts';
import type { JsonObject } from '../../client/shapes.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { type LedgerFacts, ledgerFacts } from '../../domain/event/facts.ts';
import { checkChain, wrongHash } from '../../domain/event/integrity.ts';
import { hasReadablePayload } from '../../domain/event/projection.ts';
import { parseRow } from '../../domain/event/row.ts';
import type { Head, LedgerStore, StoredEntry } from '../../store/ledger-store.ts';
import { charsOf } from '../../store/pages.ts';
import type { FullBucket, StoreInspection } from '../../store/store-inspection.ts';
import type { Finding } from './finding.ts';
import type { ProjectionScrub } from './projection-scrub.ts';

/** Events read at a time: as many as a bucket of Cassandra holds, with those of a batch that runs over its end. */
const windowEventsMax = 1_088;
/** A window with larger events ends with the one that reaches so many characters. */
const windowCharsMax = 16 * 1024 * 1024;
/** After this many windows in a row without an event the log counts as ended, whatever the store says of its end. */
const emptyWindowsMax = 64;

interface EventsUpToParts {
  readonly ledgers: LedgerStore;
  readonly inspection: Pick<StoreInspection, 'fullBuckets'>;
  readonly ledgerId: string;
  readonly head: Head | null;
  /** Receives the events, window by window. */
  readonly projections: Pick<ProjectionScrub, 'take'>;
  readonly found: (finding: Finding) => void;
}

interface Place {
  from: number;
  before: LedgerEvent | null;
  facts: LedgerFacts | null;
  emptyWindows: number;
}

/**
 * Yields the readable events up to the head, as clients read them. Before that it checks them as they are stored, and
 * compares with them what the store says of the end of the log and of each full bucket.
 */
export async function* eventsUpTo(parts: EventsUpToParts): AsyncIterable<Event> {
  const { inspection, ledgerId, head, found } = parts;
  const place: Place = { from: 0, before: null, facts: null, emptyWindows: 0 };
  const end = head?.seq ?? -1;
  // Windows end where buckets end, so that the events are found whatever the store says of a bucket's end.
  for await (const bucket of inspection.fullBuckets(ledgerId, end)) {
    yield* eventsThrough(parts, place, Math.min(bucket.lastSeq, end));
    const detail = wrongBucketEnd(bucket, place.before);
    if (detail !== null) found({ ledgerId, seq: bucket.lastSeq, type: 'wrong_head', detail });
  }
  yield* eventsThrough(parts, place, end);
  const { before } = place;
  const wrongEnd = (detail: string) => found({ ledgerId, seq: end, type: 'wrong_head', detail });
  if (head !== null && before?.seq !== head.seq) wrongEnd('the event that the ledger ends in is missing or damaged');
  else if (head !== null && before?.hash !== head.hash)
    wrongEnd('the newest event is not the one that the store says it is');
}

async function* eventsThrough(parts: EventsUpToParts, place: Place, last: number): AsyncIterable<Event> {
  const { ledgers, ledgerId, projections, found } = parts;
  while (place.from <= last && place.emptyWindows < emptyWindowsMax) {
    const { from, before } = place;
    const asked = Math.min(from + windowEventsMax, last + 1);
    const entries = await ledgers.read(ledgerId, from, asked - from, windowCharsMax);
    const isCut = charsOf(entries) >= windowCharsMax;
    const to = isCut ? Math.min(asked, (entries.at(-1)?.seq ?? from) + 1) : asked;
    const events: LedgerEvent[] = [];
    for (const entry of entries) {
      if (entry.seq >= to) break;
      const event = eventOf(ledgerId, entry);
      if ('type' in event) found(event);
      else events.push(event);
    }
    const seqs = new Map(events.map(({ id, seq }) => [id, seq]));
    for (const { eventId, type, detail } of checkChain(events, { kind: 'ledger', before }))
      found({ ledgerId, seq: seqs.get(eventId) ?? null, type, detail });
    const whole = events.filter((event) => {
      if (wrongHash(event) !== null) return false;
      const isReadable = hasReadablePayload(event);
      if (!isReadable) found(unreadableRow(ledgerId, event.seq, 'its payload cannot be read'));
      return isReadable;
    });
    const [first] = whole;
    if (first?.seq === 0) place.facts = ledgerFacts(first);
    await projections.take(whole, place.facts, from, to);
    yield* whole.map(asRead);
    place.emptyWindows = events.length === 0 ? place.emptyWindows + 1 : 0;
    place.before = events.at(-1) ?? before;
    place.from = to;
  }
}

/** What is wrong with the end of a full bucket, in words. null if nothing is, or if its last event was reported. */
function wrongBucketEnd({ bucket, lastSeq, head }: FullBucket, last: LedgerEvent | null): string | null {
  const wrong = (what: string) => `bucket ${bucket} ends in seq ${lastSeq}, and the store ${what}`;
  const hidden = 'what stands behind it may be hidden from readers';
  if (head === null) return wrong(`does not say so: ${hidden}`);
  if (head.seq !== lastSeq) return wrong(`says that it ends in seq ${head.seq}: ${hidden}`);
  const isOther = last?.seq === lastSeq && last.hash !== head.hash;
  return isOther ? wrong('has another hash of that event') : null;
}

/** The event of a row, or a finding if there is none, or one of another place. */
export function eventOf(ledgerId: string, entry: StoredEntry): LedgerEvent | Finding {
  const unreadable = (detail: string) => unreadableRow(ledgerId, entry.seq, detail);
  let event: LedgerEvent;
  try {
    event = parseRow(entry.row);
  } catch (error) {
    return unreadable(error instanceof Error ? error.message : String(error));
  }
  const isHere = event.seq === entry.seq && event.ledgerId === ledgerId;
  return isHere ? event : unreadable(`the event stored there is seq ${event.seq} of ledger ${event.ledgerId}`);
}

function unreadableRow(ledgerId: string, seq: number, detail: string): Finding {
  return { ledgerId, seq, type: 'unreadable_row', detail };
}

/** The event as a client reads it, with more fields. */
function asRead(event: LedgerEvent): Event {
  const { master, payload, actorSigPayload, ...fields } = event;
  return {
    ...fields,
    masterId: master?.id ?? null,
    masterSeq: master?.seq ?? null,
    payload: JSON.parse(payload) as JsonObject,
    actorSigPayload: actorSigPayload === null ? null : (JSON.parse(actorSigPayload) as JsonObject),
  };
}
