import type { Event } from '../client/event.ts';
import type { LedgerEvent } from '../domain/event.ts';
import { checkChain, wrongHash } from '../domain/integrity.ts';
import { type LedgerFacts, ledgerFacts } from '../domain/ledger-facts.ts';
import type { Head, LedgerStore } from '../store/ledger-store.ts';
import type { Finding } from './finding.ts';
import type { ProjectionScrub } from './projection-scrub.ts';
import { asRead, eventOf } from './scrubbed-event.ts';

/** Events read at once: as many as a bucket of Cassandra has. */
const windowEvents = 1_024;

/** The readable events up to the head, checked as they are stored, on their way to be verified as they are read. */
export async function* eventsUpTo(
  ledgers: LedgerStore,
  ledgerId: string,
  head: Head | null,
  projections: ProjectionScrub,
  found: (finding: Finding) => void,
  seqs: Map<string, number>,
): AsyncIterable<Event> {
  let before: LedgerEvent | null = null;
  let facts: LedgerFacts | null = null;
  const end = head?.seq ?? -1;
  for (let from = 0; from <= end; from += windowEvents) {
    const to = Math.min(from + windowEvents, end + 1);
    const events: LedgerEvent[] = [];
    for (const entry of await ledgers.read(ledgerId, from, to - from)) {
      if (entry.seq >= to) break;
      const event = eventOf(ledgerId, entry);
      if ('type' in event) found(event);
      else events.push(event);
    }
    seqs.clear();
    for (const event of events) seqs.set(event.id, event.seq);
    for (const { eventId, type, detail } of checkChain(events, { kind: 'ledger', before }))
      found({ ledgerId, seq: seqs.get(eventId) ?? null, type, detail });
    const whole = events.filter((event) => wrongHash(event) === null);
    const [first] = whole;
    if (first?.seq === 0) facts = ledgerFacts(first);
    await projections.take(whole, facts, from, to);
    for (const event of whole) {
      const read = asRead(event);
      if (read !== null) yield read;
    }
    before = events.at(-1) ?? before;
  }
  const wrongEnd = (detail: string) => found({ ledgerId, seq: end, type: 'wrong_head', detail });
  if (head !== null && before?.seq !== head.seq) wrongEnd('the event that the ledger ends in is missing or damaged');
  else if (head !== null && before?.hash !== head.hash)
    wrongEnd('the newest event is not the one that the store says it is');
}
