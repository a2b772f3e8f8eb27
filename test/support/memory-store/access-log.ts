import {
  type AccessEvent,
  type AccessLog,
  type AccessPage,
  type AccessReading,
  accessTime,
} from '../../../src/store/access-log.ts';
import { checkAccessOrder } from '../../../src/store/write-checks.ts';
import { partOf } from './pages.ts';

/**
 * The data of memory access logs, by actor, then by event id. Several logs over one of these behave like several nodes
 * over one database.
 */
export type MemoryAccessData = Map<string, Map<string, AccessEvent>>;

/** Access histories in memory, for tests. */
export class MemoryAccessLog implements AccessLog {
  readonly #data: MemoryAccessData;

  constructor(data: MemoryAccessData = new Map()) {
    this.#data = data;
  }

  async append(events: readonly AccessEvent[]): Promise<void> {
    checkAccessOrder(events);
    await Promise.resolve();
    for (const event of events) {
      const history = this.#data.get(event.actorId) ?? new Map<string, AccessEvent>();
      history.set(event.id, Object.freeze({ ...event }));
      this.#data.set(event.actorId, history);
    }
  }

  async list(
    actorId: string,
    { ledgerId, since, ...page }: AccessPage,
    reading?: AccessReading,
  ): Promise<AccessEvent[]> {
    await Promise.resolve();
    const shown = [...(this.#data.get(actorId)?.values() ?? [])]
      .filter((event) => ledgerId === null || event.ledgerId === ledgerId)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    reading?.examined(shown.length);
    return partOf(shown, { ...page, startsAt: ({ id }) => accessTime(id) >= since });
  }

  async sweep(before: number): Promise<number> {
    await Promise.resolve();
    let dropped = 0;
    for (const history of this.#data.values())
      for (const id of history.keys()) if (accessTime(id) < before && history.delete(id)) dropped++;
    return dropped;
  }
}
