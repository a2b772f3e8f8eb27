import { byCodeUnits } from '../../../domain/json/canonical.ts';
import { type AccessEvent, accessTime, isAccessEvent } from '../../access-log.ts';
import { decodeOrPassOver } from '../../unreadable-record.ts';
import { accessHour } from '../keys.ts';
import { inParts } from '../session/session.ts';

/** An event takes about 100 bytes, so writing a row costs far more than its content. */
export const blockEventsMax = 32;
/** No block holds events of more than one such span of time, ms. So histories can be read span by span. */
export const blockSpanMs = 1_000;
const uuidChars = 36;

export interface AccessBlock {
  readonly actorId: string;
  readonly hour: number;
  readonly events: readonly AccessEvent[];
}

/** The same events make the same blocks, so a retry is idempotent. */
export function accessBlocks(events: readonly AccessEvent[]): AccessBlock[] {
  const blocks: AccessBlock[] = [];
  for (const [actorId, own] of Map.groupBy(events, (event) => event.actorId))
    for (const [span, inSpan] of Map.groupBy(own, ({ id }) => Math.floor(accessTime(id) / blockSpanMs)))
      for (const events of inParts(inSpan, blockEventsMax))
        blocks.push({ actorId, hour: accessHour(span * blockSpanMs), events });
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
 * The events of an actor's blocks in the order of their ids. Blocks of several nodes overlap in time. A block is parsed
 * only when its first event is next, so that a short page parses few blocks.
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

/** Separates two events. Never within one: quotes in texts are escaped, and no text of an event ends in `,[`. */
const nextEvent = ',["';

function lastIdIn(text: string): string {
  return idAt(text, text.lastIndexOf(nextEvent) + 1 || 1);
}

function idAt(text: string, at: number): string {
  return text.slice(at + 2, at + 2 + uuidChars);
}

/** Parses what formatAccessEvents returned. Throws for any other text. */
export function parseAccessEvents(actorId: string, text: string): AccessEvent[] {
  return (JSON.parse(text) as EventForm[]).map(([id, apiKeyId, ledgerId, method, path, responseStatus, requestId]) => {
    const event: AccessEvent = { id, actorId, apiKeyId, ledgerId, method, path, responseStatus, requestId };
    if (!isAccessEvent(event)) throw new TypeError('This is no access event.');
    return event;
  });
}
