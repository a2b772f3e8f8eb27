import type { ListLedgerEventsResponse } from '../gen/svc/v1/ledgers_pb.ts';
import { ask, type Caller } from './call/call.ts';
import { endpointNamed } from './endpoint.ts';
import type { Event } from './event.ts';
import type { CallOptions } from './methods.ts';

/** A place of lists: beyond it they take no offset. */
const OFFSET_MAX = 100_000;

/** Milliseconds for the first event of a stream. */
const STREAM_MS = 30_000;

type ReadOptions = Pick<CallOptions, 'signal' | 'timeoutMs' | 'attemptsMax'>;

/** Reads single events by their place, for what else has no call of its own. Returns null if there is no such event. */
export interface SingleEvents {
  ledgerEvent(ledgerId: string, seq: number): Promise<Event | null>;
  masterEvent(masterId: string, masterSeq: number): Promise<Event | null>;
  newestOfLedger(ledgerId: string): Promise<Event | null>;
  newestOfMaster(masterId: string): Promise<Event | null>;
  /** The LEDGER_CLOSED of a ledger. */
  closingOfLedger(ledgerId: string): Promise<Event | null>;
  /** The MASTER_CLOSED of a master. */
  closingOfMaster(masterId: string): Promise<Event | null>;
}

export function createSingleEvents(caller: Caller, options: ReadOptions): SingleEvents {
  const first = async (method: string, request: object): Promise<Event | null> => {
    const { events } = await ask<Pick<ListLedgerEventsResponse, 'events'>>(caller, method, request, options);
    return events[0] ?? null;
  };
  const newest = { order: 'desc', limit: 1 };
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
    closingOfLedger: (ledgerId) => first('listLedgerEvents', { ledgerId, eventType: 'LEDGER_CLOSED', limit: 1 }),
    closingOfMaster: (uuid) => first('listMasterEvents', { uuid, eventType: 'MASTER_CLOSED', limit: 1 }),
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
