import type { GetDelegationProofRequest, GetDelegationProofResponse } from '../gen/svc/v1/delegation_pb.ts';
import type { Integrity } from '../gen/svc/v1/event_pb.ts';
import type { ListLedgerEventsRequest, ListLedgerEventsResponse } from '../gen/svc/v1/ledgers_pb.ts';
import type { ListMasterEventsRequest, ListMasterEventsResponse } from '../gen/svc/v1/masters_pb.ts';
import type { Caller } from './call/call.ts';
import { endpointNamed } from './endpoint.ts';
import { LedgerTrustError } from './error.ts';
import type { Event } from './event.ts';
import type { CallOptions } from './methods.ts';
import type { Answer, Request } from './shapes.ts';

type Issues = Answer<Integrity>['issues'];

export interface EventReadingOptions extends Pick<CallOptions, 'signal' | 'timeoutMs' | 'attemptsMax'> {
  /**
   * Called with the integrity failures that the service reports in a page, before the page's events are yielded.
   * Without it, reading throws `integrity_failed` there, so that events that do not verify are not accepted by
   * accident.
   */
  readonly onIssues?: (issues: Issues) => void;
}

/** `limit` is the size of a page, not of the whole list. */
export type LedgerEventFilter = Omit<Request<ListLedgerEventsRequest>, 'ledgerId' | 'cursor'>;
export type MasterEventFilter = Omit<Request<ListMasterEventsRequest>, 'uuid' | 'cursor'>;
export type DelegationEventFilter = Omit<Request<GetDelegationProofRequest>, 'cursor'>;

/**
 * Reads lists of events to their end, a page when the last one is consumed. Throws what a call throws,
 * `integrity_failed` (EventReadingOptions), and `invalid_answer` if the service gives no end of the list.
 */
export interface EventReading {
  ledgerEvents(ledgerId: string, filter?: LedgerEventFilter, options?: EventReadingOptions): AsyncIterable<Event>;
  masterEvents(masterId: string, filter?: MasterEventFilter, options?: EventReadingOptions): AsyncIterable<Event>;
  /** Every grant and revoke event of one scope (GET /delegation/proof). */
  delegationEvents(scope: DelegationEventFilter, options?: EventReadingOptions): AsyncIterable<Event>;
  ledgerEventPages(
    ledgerId: string,
    filter?: LedgerEventFilter,
    options?: EventReadingOptions,
  ): AsyncIterable<Answer<ListLedgerEventsResponse>>;
  masterEventPages(
    masterId: string,
    filter?: MasterEventFilter,
    options?: EventReadingOptions,
  ): AsyncIterable<Answer<ListMasterEventsResponse>>;
}

interface Page {
  readonly events: readonly Event[];
  readonly integrity: Answer<Integrity>;
  readonly nextCursor: string | null;
}

export function createEventReading(caller: Caller): EventReading {
  async function* pages<P extends Page>(name: string, request: object, options: EventReadingOptions): AsyncIterable<P> {
    const { onIssues = refuseIssues, ...callOptions } = options;
    const endpoint = endpointNamed(name);
    const progress = new Progress('order' in request && request.order === 'desc');
    let cursor: string | null = null;
    do {
      const asked: object = cursor === null ? request : { ...request, cursor };
      // The answer was decoded with the descriptor of the same method.
      const page = (await caller.call(endpoint, { ...asked }, callOptions)) as unknown as P;
      if (!page.integrity.verified) onIssues(page.integrity.issues);
      progress.take(page);
      yield page;
      cursor = page.nextCursor;
    } while (cursor !== null);
  }

  async function* eventsOf(source: AsyncIterable<Page>): AsyncIterable<Event> {
    for await (const { events } of source) yield* events;
  }
  const ledgerEventPages: EventReading['ledgerEventPages'] = (ledgerId, filter = {}, options = {}) =>
    pages<Answer<ListLedgerEventsResponse>>('listLedgerEvents', { ...filter, ledgerId }, options);
  const masterEventPages: EventReading['masterEventPages'] = (uuid, filter = {}, options = {}) =>
    pages<Answer<ListMasterEventsResponse>>('listMasterEvents', { ...filter, uuid }, options);

  return {
    ledgerEvents: (...given) => eventsOf(ledgerEventPages(...given)),
    masterEvents: (...given) => eventsOf(masterEventPages(...given)),
    delegationEvents: (scope, options = {}) =>
      eventsOf(pages<Answer<GetDelegationProofResponse>>('getDelegationProof', scope, options)),
    ledgerEventPages,
    masterEventPages,
  };
}

/**
 * Pages in a row without a new event. A filtered page examines up to 10,000 events and may hold none, so this many
 * stand for a hundred million events.
 */
const PAGES_WITHOUT_PROGRESS_MAX = 10_000;

/** Checks that each page comes nearer to the end of the list, whatever cursors the service gives. */
class Progress {
  readonly #descending: boolean;
  #lastSeq: number | null = null;
  /** The cursors since the last page with a new event. */
  readonly #cursors = new Set<string>();

  constructor(descending: boolean) {
    this.#descending = descending;
  }

  /** Throws LedgerTrustError `invalid_answer` if reading may never end. */
  take({ events, integrity, nextCursor }: Page): void {
    const lastSeq = events.at(-1)?.seq ?? null;
    const isBeyond = lastSeq !== null && this.#isBeyond(lastSeq);
    // A page that the service reports as damaged may hold any seq.
    if (lastSeq !== null && !isBeyond && integrity.verified) throw noProgress('its events are not behind those before');
    if (isBeyond) {
      this.#lastSeq = lastSeq;
      this.#cursors.clear();
    }
    if (nextCursor === null) return;
    if (this.#cursors.has(nextCursor)) throw noProgress('it gave the same cursor twice');
    if (this.#cursors.size >= PAGES_WITHOUT_PROGRESS_MAX)
      throw noProgress(`${PAGES_WITHOUT_PROGRESS_MAX} pages in a row hold no new event`);
    this.#cursors.add(nextCursor);
  }

  #isBeyond(seq: number): boolean {
    if (this.#lastSeq === null) return true;
    return this.#descending ? seq < this.#lastSeq : seq > this.#lastSeq;
  }
}

function noProgress(what: string): LedgerTrustError {
  return new LedgerTrustError(
    'invalid_answer',
    `The service does not come to the end of the list: ${what}. Read it again from its start, through another node if there is one; if that ends the same, tell the operator of the service.`,
  );
}

function refuseIssues(issues: Issues): never {
  throw new LedgerTrustError(
    'integrity_failed',
    'The service found events that are not what was written: keep this answer and escalate it.',
    { details: { issues } },
  );
}
