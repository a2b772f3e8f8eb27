import type { ListLedgerEventsResponse } from '../gen/svc/v1/ledgers_pb.ts';
import { ask, type Caller } from './call/call.ts';
import { endpointNamed } from './endpoint.ts';
import type { Event } from './event.ts';
import type { CallOptions } from './methods.ts';

/** A place of lists: beyond it they take no offset. */
const OFFSET_MAX = 100_000;

/** Pages that are read to find the last event before revocations: up to 10,000 of them. */
const LAST_PAGES_MAX = 101;
const LAST_PAGE_EVENTS = 100;
const REVOCATION = /^(?:MASTER|LEDGER|SUPPLIER)_DELEGATION_REVOKED$/;

/** Milliseconds for the first event of a stream. */
const STREAM_MS = 30_000;

type EventPage = Pick<ListLedgerEventsResponse, 'events' | 'nextCursor'>;
type ReadOptions = Pick<CallOptions, 'signal' | 'timeoutMs' | 'attemptsMax'>;

/** Reads single events by their place, for what else has no call of its own. Returns null if there is no such event. */
export interface SingleEvents {
  ledgerEvent(ledgerId: string, seq: number): Promise<Event | null>;
  masterEvent(masterId: string, masterSeq: number): Promise<Event | null>;
  newestOfLedger(ledgerId: string): Promise<Event | null>;
  newestOfMaster(masterId: string): Promise<Event | null>;
  /** The newest event that revokes no access: only revocations may stand behind a closing. */
  lastOfLedger(ledgerId: string): Promise<Event | 'unreadable' | null>;
  lastOfMaster(masterId: string): Promise<Event | 'unreadable' | null>;
}

export function createSingleEvents(caller: Caller, options: ReadOptions): SingleEvents {
  const first = async (method: string, request: object): Promise<Event | null> => {
    const { events } = await ask<EventPage>(caller, method, request, options);
    return events[0] ?? null;
  };
  const newest = { order: 'desc', limit: 1 };
  // Without a filter: a filtered page may end before its first event, since the service examines a bounded number.
  const last = async (method: string, request: object): Promise<Event | 'unreadable' | null> => {
    let page: object = newest;
    for (let pages = 0; pages < LAST_PAGES_MAX; pages += 1) {
      const { events, nextCursor } = await ask<EventPage>(caller, method, { ...request, ...page }, options);
      const found = events.find(({ eventType }) => !REVOCATION.test(eventType));
      if (found !== undefined || nextCursor === null) return found ?? null;
      page = { order: 'desc', limit: LAST_PAGE_EVENTS, cursor: nextCursor };
    }
    return 'unreadable';
  };
  return {
    async ledgerEvent(ledgerId, fromSeq) {
      const event = await first('listLedgerEvents', { ledgerId, fromSeq, limit: 1 });
      return event?.seq === fromSeq ? event : null;
    },
    async masterEvent(uuid, masterSeq) {
      const event =
        masterSeq <= OFFSET_MAX
          ? await first('listMasterEvents', { uuid, offset: masterSeq, limit: 1 })
          : await firstFollowed(caller, uuid, masterSeq, options);
      return event?.masterSeq === masterSeq ? event : null;
    },
    newestOfLedger: (ledgerId) => first('listLedgerEvents', { ledgerId, ...newest }),
    newestOfMaster: (uuid) => first('listMasterEvents', { uuid, ...newest }),
    lastOfLedger: (ledgerId) => last('listLedgerEvents', { ledgerId }),
    lastOfMaster: (uuid) => last('listMasterEvents', { uuid }),
  };
}

async function firstFollowed(
  caller: Caller,
  uuid: string,
  masterSeq: number,
  { signal, timeoutMs = STREAM_MS }: ReadOptions,
): Promise<Event | null> {
  const request = { uuid, afterMasterSeq: masterSeq - 1 };
  const ending = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])]);
  for await (const { kind, value } of caller.live(endpointNamed('followMasterEvents'), request, ending))
    return kind === 'event' ? (value.event as Event) : null;
  return null;
}
