import type { AccessEvent } from '../access-log.ts';
import { accessTime } from '../access-order.ts';

/** Events in one row: a hundred bytes each, and a write of a row costs far more than what is in it. */
const blockEventsMax = 32;
const hourMs = 60 * 60 * 1000;

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

export function parseAccessEvents(actorId: string, text: string): AccessEvent[] {
  return (JSON.parse(text) as EventForm[]).map(
    ([id, apiKeyId, ledgerId, method, path, responseStatus, requestId]) =>
      ({ id, actorId, apiKeyId, ledgerId, method, path, responseStatus, requestId }) satisfies AccessEvent,
  );
}
