import type { LedgerEvent } from '../../domain/event/event.ts';
import { type IntegrityIssue, missingEvents } from '../../domain/event/integrity.ts';
import { closedByType } from '../../domain/event/service-events.ts';
import type { FollowQuery } from './follow-query.ts';
import { type NewestShown, newestShown } from './newest-readable.ts';
import type { ReaderAccess } from './reader-access.ts';

export interface FollowStart {
  /** The first seq to look at. */
  readonly nextSeq: number;
  /** The event behind which the stream begins, if it is one that the reader may read. */
  readonly newest: NewestShown | null;
  /** The seq of the event behind which nothing is followed; null while it is open. */
  readonly closedSeq: number | null;
}

/** Where a stream stands in its ledger: which event is next, and behind which one its reader would resume. */
export class StreamPosition {
  nextSeq: number;
  /** Unused by a reader of the whole ledger, which is told of the ledger's own. */
  newest: NewestShown | null;
  #closedSeq: number | null;
  readonly #masterId: string | null;
  readonly #query: FollowQuery;
  readonly #access: ReaderAccess;

  constructor(masterId: string | null, query: FollowQuery, access: ReaderAccess, start: FollowStart) {
    this.nextSeq = start.nextSeq;
    this.newest = start.newest;
    this.#closedSeq = start.closedSeq;
    this.#masterId = masterId;
    this.#query = query;
    this.#access = access;
  }

  /** Whether its reader follows the ledger and may read all of it. */
  get readsAll(): boolean {
    return this.#masterId === null && this.#access.isWhole;
  }

  /** Whether it stands behind all that is followed. */
  get isAtEnd(): boolean {
    return this.#closedSeq !== null && this.nextSeq > this.#closedSeq;
  }

  /**
   * Whether the stream began behind an event that the tail has not shown yet. Whether that event ends the access is not
   * known, so the reader is told nothing of it.
   */
  isAhead(shownSeq: number): boolean {
    return shownSeq < this.nextSeq - 1;
  }

  /** Learns whether anything is followed behind the event. 'end': not even the event. */
  pass({ seq, eventType, createdAt, master }: LedgerEvent): 'end' | null {
    if (this.#query.to !== null && createdAt > this.#query.to) {
      this.#closedSeq = seq - 1;
      return 'end';
    }
    const closed = closedByType(eventType);
    if (closed === 'ledger' || (closed === 'master' && master?.id === this.#masterId)) this.#closedSeq = seq;
    return null;
  }

  /** The link to the event before it in the master. The link in the ledger is checked for all followers. */
  linkIssues({ id, master }: LedgerEvent): IntegrityIssue[] {
    const before = this.newest;
    if (this.#masterId === null || master === null || before?.master == null) return [];
    if (master.seq === before.master.seq + 1)
      return master.prevHash === before.contentHash
        ? []
        : [{ eventId: id, type: 'broken_link', detail: 'the event does not seal the event before it in its master' }];
    const gap = master.seq - before.master.seq - 1;
    const detail = `${missingEvents(gap, ' of the master')} before master_seq ${master.seq}`;
    return gap > 0 ? [{ eventId: id, type: 'missing_event', detail }] : [];
  }

  keepNewest(event: LedgerEvent): void {
    if (!this.readsAll) this.newest = newestShown(event);
  }

  /** Behind which event the reader goes on. A reader of some masters is not told how many other events there are. */
  get resumeAfter(): number | null {
    if (this.#masterId !== null) return this.newest?.master?.seq ?? null;
    if (!this.#access.isWhole) return this.newest?.seq ?? null;
    return this.nextSeq === 0 ? null : this.nextSeq - 1;
  }

  /** `resumeAfter` while `isAhead`: the place that the request named; for new events only, the newest shown event. */
  resumeAfterWhileAhead(newest: NewestShown | null): number | null {
    const { after } = this.#query;
    if (after !== null) return after === -1 ? null : after;
    return (this.#masterId === null ? newest?.seq : newest?.master?.seq) ?? null;
  }
}
