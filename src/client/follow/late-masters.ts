import { isoTime } from '../../domain/values/time.ts';
import type { Event } from '../event.ts';
import { CLOCK_BEHIND_MAX_MS } from '../verify/verifying.ts';
import type { FollowIssues } from './follow-api.ts';

const GRANTED = /^(?:MASTER|LEDGER|SUPPLIER)_DELEGATION_GRANTED$/;

/**
 * The masters of a segment that is followed from its start. Each comes from its first event on, but for those that are
 * granted while it is followed: their events come from then on. The grant may come behind the first of these: the
 * service looks at grants when it sends an event, not when that was written.
 */
export class LateMasters {
  /** A grant that is dated before was there when following began. */
  readonly #grantedFrom: string;
  /** Masters that were granted meanwhile. */
  readonly #granted = new Set<string>();
  #isLedgerGranted = false;
  /** The first event that came of masters whose beginning did not. */
  readonly #late = new Map<string, Event>();

  constructor(beganMs: number) {
    this.#grantedFrom = isoTime(beganMs - CLOCK_BEHIND_MAX_MS);
  }

  /** `isFirst`: no event of its master came before. */
  take(event: Event, isFirst: boolean): void {
    const { masterId, masterSeq, eventType, createdAt } = event;
    if (GRANTED.test(eventType) && createdAt >= this.#grantedFrom) this.#grant(masterId);
    if (!isFirst || masterId === null || masterSeq === 0) return;
    if (!this.#isLedgerGranted && !this.#granted.has(masterId)) this.#late.set(masterId, event);
  }

  #grant(masterId: string | null): void {
    if (masterId === null) {
      this.#isLedgerGranted = true;
      this.#late.clear();
    } else {
      this.#granted.add(masterId);
      this.#late.delete(masterId);
    }
  }

  /** The issues of masters that nothing explains, each once. To be asked for when all events of the past have come. */
  takeIssues(): FollowIssues {
    const issues = [...this.#late].map(([masterId, { id, masterSeq }]) => ({
      eventId: id,
      type: 'missing_event',
      detail: `the events that the master ${masterId} begins with, before master_seq ${masterSeq}, are missing`,
    }));
    this.#late.clear();
    return issues;
  }
}
