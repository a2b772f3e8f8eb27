import { type AccessEvent, isAccessEvent } from '../../access-log.ts';

/**
 * Most events of one actor in one row. They were answered at about the same time and have much in common, which the row
 * holds once. A row of about 3 KiB needs no page of its own.
 */
export const blockEventsMax = 32;

/** API keys, ledgers, methods and paths, which events refer to by index. Then ITEMS values for each event. */
type BlockForm = readonly [
  apiKeys: readonly (string | null)[],
  ledgers: readonly (string | null)[],
  methods: readonly string[],
  paths: readonly string[],
  events: readonly (string | number)[],
];
const ITEMS = 7;

export function formatBlock(events: readonly AccessEvent[]): string {
  const apiKeys: (string | null)[] = [];
  const ledgers: (string | null)[] = [];
  const methods: string[] = [];
  const paths: string[] = [];
  const items: (string | number)[] = [];
  for (const { id, apiKeyId, ledgerId, method, path, responseStatus, requestId } of events)
    items.push(
      id,
      placeOf(apiKeys, apiKeyId),
      placeOf(ledgers, ledgerId),
      placeOf(methods, method),
      placeOf(paths, path),
      responseStatus,
      requestId,
    );
  const form: BlockForm = [apiKeys, ledgers, methods, paths, items];
  return JSON.stringify(form);
}

export function parseBlock(actorId: string, text: string): AccessEvent[] {
  const [apiKeys, ledgers, methods, paths, items] = JSON.parse(text) as BlockForm;
  const events: AccessEvent[] = [];
  for (let at = 0; at < items.length; at += ITEMS) {
    const event: AccessEvent = {
      id: String(items[at]),
      actorId,
      apiKeyId: apiKeys[Number(items[at + 1])] ?? null,
      ledgerId: ledgers[Number(items[at + 2])] ?? null,
      method: methods[Number(items[at + 3])] ?? '',
      path: paths[Number(items[at + 4])] ?? '',
      responseStatus: Number(items[at + 5]),
      requestId: String(items[at + 6]),
    };
    if (!isAccessEvent(event)) throw new TypeError('This is no access event.');
    events.push(event);
  }
  return events;
}

function placeOf<T>(list: T[], value: T): number {
  const found = list.indexOf(value);
  return found >= 0 ? found : list.push(value) - 1;
}
