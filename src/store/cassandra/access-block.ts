import { byCodeUnits } from '../../domain/canonical.ts';
import { isUuid } from '../../domain/uuid.ts';
import type { AccessEvent } from '../access-log.ts';
import { accessTime } from '../access-order.ts';
import { decodeOrPassOver } from '../unreadable-record.ts';

/** Events in one row: a hundred bytes each, and a write of a row costs far more than what is in it. */
const blockEventsMax = 32;
const hourMs = 60 * 60 * 1000;
const uuidChars = 36;

/** Events of one actor from one hour that were handed over together. */
export interface AccessBlock {
  readonly actorId: string;
  readonly hour: number;
  readonly events: readonly AccessEvent[];
}

export function accessHour(ms: number): number {
  return Math.floor(ms / hourMs);
}

/** Events in their order as blocks. The same events always make the same blocks. */
export function accessBlocks(events: readonly AccessEvent[]): AccessBlock[] {
  const blocks: AccessBlock[] = [];
  for (const [actorId, own] of Map.groupBy(events, (event) => event.actorId))
    for (const [hour, inHour] of Map.groupBy(own, ({ id }) => accessHour(accessTime(id))))
      for (let at = 0; at < inHour.length; at += blockEventsMax)
        blocks.push({ actorId, hour, events: inHour.slice(at, at + blockEventsMax) });
  return blocks;
}

type EventForm = readonly [
  id: string,
  apiKeyId: string | null,
  ledgerId: string | null,
  method: string,
  path: string,
  responseStatus: number,
  requestId: string,
];

export function formatAccessEvents(events: readonly AccessEvent[]): string {
  const forms = events.map(({ id, apiKeyId, ledgerId, method, path, responseStatus, requestId }): EventForm => {
    return [id, apiKeyId, ledgerId, method, path, responseStatus, requestId];
  });
  return JSON.stringify(forms);
}

/**
 * The events of blocks, in the order of their ids or against it. Blocks of several nodes overlap in time; no block is parsed before
 * its turn.
 */
export function* eventsInOrder(
  actorId: string,
  texts: readonly string[],
  descending: boolean,
): Generator<AccessEvent, void> {
  const order = descending ? -1 : 1;
  const blocks = texts
    .map((text) => ({ text, firstToShow: descending ? lastIdIn(text) : idAt(text, 1) }))
    .sort((left, right) => order * byCodeUnits(left.firstToShow, right.firstToShow));
  let open: AccessEvent[] = [];
  for (const { text, firstToShow } of blocks) {
    const ready = open.findIndex(({ id }) => order * byCodeUnits(id, firstToShow) >= 0);
    yield* open.splice(0, ready < 0 ? open.length : ready);
    const stored = { kind: 'access_block', id: actorId, value: text };
    const events = decodeOrPassOver(stored, (value) => parseAccessEvents(actorId, value)) ?? [];
    open = [...open, ...events].sort((left, right) => order * byCodeUnits(left.id, right.id));
  }
  yield* open;
}

/** No event holds this inside: quotes in a text are escaped, and none of the texts ends in `,[`. */
const nextEvent = ',["';

function lastIdIn(text: string): string {
  return idAt(text, text.lastIndexOf(nextEvent) + 1 || 1);
}

/** The id of the event whose form begins there. */
function idAt(text: string, at: number): string {
  return text.slice(at + 2, at + 2 + uuidChars);
}

/** Throws for what formatAccessEvents has not written. */
export function parseAccessEvents(actorId: string, text: string): AccessEvent[] {
  return (JSON.parse(text) as EventForm[]).map(([id, apiKeyId, ledgerId, method, path, responseStatus, requestId]) => {
    if (!isUuid(id) || typeof method !== 'string') throw new TypeError('This is no access event.');
    return { id, actorId, apiKeyId, ledgerId, method, path, responseStatus, requestId } satisfies AccessEvent;
  });
}
