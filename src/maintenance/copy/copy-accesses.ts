import { type AccessEvent, type AccessLog, accessTime } from '../../store/access-log.ts';

const pageEvents = 2_000;
const hourMs = 60 * 60_000;

/**
 * Copies the access history of one actor, from `since` (milliseconds since 1970) on. It appends hour by hour, each hour
 * whole and in order. So a repeated copy writes the same events and none twice, also after the oldest were deleted or
 * new ones were added.
 */
export async function copyAccesses(
  source: AccessLog,
  target: AccessLog,
  actorId: string,
  since: number,
): Promise<void> {
  const hours = new Map<number, AccessEvent[]>();
  // A history is nearly in the order of time: no event is out of place by more than an hour.
  const flush = async (before: number) => {
    for (const [hour, events] of hours) {
      if (hour >= before) continue;
      hours.delete(hour);
      await target.append(events.sort((a, b) => (a.id < b.id ? -1 : 1)));
    }
  };
  for (let offset = 0; ; offset += pageEvents) {
    const page = { ledgerId: null, since, limit: pageEvents, offset, descending: false };
    const events = await source.list(actorId, page);
    for (const event of events) {
      const hour = Math.floor(accessTime(event.id) / hourMs);
      const inHour = hours.get(hour);
      if (inHour === undefined) hours.set(hour, [event]);
      else inHour.push(event);
    }
    const last = events.at(-1);
    if (last === undefined || events.length < pageEvents) break;
    await flush(Math.floor(accessTime(last.id) / hourMs) - 1);
  }
  await flush(Number.POSITIVE_INFINITY);
}
