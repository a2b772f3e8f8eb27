import { uuidBytes } from '../../../domain/values/uuid.ts';
import { type AccessEvent, type AccessLog, type AccessPage, type AccessReading, accessTime } from '../../access-log.ts';
import { decodeOrPassOver } from '../../unreadable-record.ts';
import { checkAccessOrder } from '../../write-checks.ts';
import type { Commits } from '../commits.ts';
import { keysIn } from '../ranges.ts';
import type { BytesTable, Tables } from '../tables.ts';
import { TimeWindows } from '../time-windows.ts';
import { blockEventsMax, formatBlock, parseBlock } from './access-block.ts';
import {
  actorLedgerPrefix,
  actorPrefix,
  blockKey,
  blockOfLedgerKey,
  blockTimeKey,
  countOfBlockKey,
  formatPlaces,
  placesOf,
  timeOfBlockKey,
} from './access-keys.ts';

/** Long enough for few windows to cover 90 days, short enough for little to be kept much longer than 90 days. */
const windowMs = 15 * 24 * 60 * 60 * 1000;
/** Keys read in one turn of the event loop, so that a large offset such as 100,000 does not hold up appends. */
const KEYS_AT_ONCE = 256;

export class LmdbAccessLog implements AccessLog {
  readonly #windows: TimeWindows;
  readonly #commits: Commits;

  constructor(tables: Tables, commits: Commits) {
    this.#windows = new TimeWindows('access', windowMs, tables.access, tables.facts, commits);
    this.#commits = commits;
  }

  async append(events: readonly AccessEvent[]): Promise<void> {
    checkAccessOrder(events);
    const last = events.at(-1);
    if (last === undefined) return;
    this.#commits.checkUsable();
    const rows = rowsOf(events);
    const table = this.#windows.at(accessTime(last.id));
    await this.#commits.writeRepeatable('The store did not say whether the access events were written.', () =>
      table.batch(() => {
        for (const { key, value } of rows) table.put(key, value);
      }),
    );
  }

  async list(actorId: string, page: AccessPage, reading?: AccessReading): Promise<AccessEvent[]> {
    const found: AccessEvent[] = [];
    let skip = page.offset;
    const tables = this.#windows.tables();
    for (const table of page.descending ? tables : tables.reverse()) {
      for await (const { key, whole } of this.#blocksIn(table, actorId, page, reading?.signal)) {
        if (found.length === page.limit) return found;
        reading?.examined(1);
        const count = countOfBlockKey(key);
        if (whole && skip >= count) {
          skip -= count;
          continue;
        }
        const events = readBlock(table, actorId, page, key);
        reading?.examined(events.length);
        const shown = events.filter(({ id }) => whole || accessTime(id) >= page.since);
        if (page.descending) shown.reverse();
        found.push(...shown.slice(skip, skip + page.limit - found.length));
        skip = Math.max(0, skip - shown.length);
      }
    }
    return found;
  }

  async sweep(before: number): Promise<number> {
    return this.#windows.drop(before);
  }

  /** Yields the keys of a page's blocks in the order of reading. `whole`: none of its events is before `since`. */
  async *#blocksIn(
    table: BytesTable,
    actorId: string,
    { ledgerId, since, descending }: AccessPage,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<{ readonly key: Uint8Array; readonly whole: boolean }> {
    const blocks = actorPrefix(actorId);
    const prefix = ledgerId === null ? blocks : actorLedgerPrefix(blocks, ledgerId);
    this.#commits.checkReadable();
    table.resetReadTxn();
    // The last block that begins before `since` may hold later events too.
    const edge = blockTimeKey(prefix, Math.max(0, since));
    const [before] = keysIn(table, { prefix, from: edge, behindFrom: true, descending: true, limit: 1 });
    let from = descending ? undefined : before;
    for (let behindFrom = false; ; behindFrom = true) {
      const keys = keysIn(table, { prefix, from, behindFrom, descending, limit: KEYS_AT_ONCE });
      for (const key of keys) {
        const whole = timeOfBlockKey(key) >= since;
        yield { key, whole };
        if (descending && !whole) return;
      }
      if (keys.length < KEYS_AT_ONCE) return;
      from = keys.at(-1);
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
      this.#commits.checkReadable();
    }
  }
}

/** The blocks and their entries by ledger. Made before the write begins: a write that throws is written in part. */
function rowsOf(events: readonly AccessEvent[]) {
  const rows: { readonly key: Buffer; readonly value: Buffer }[] = [];
  for (const [actorId, own] of Map.groupBy(events, (event) => event.actorId)) {
    const prefix = actorPrefix(actorId);
    for (let at = 0; at < own.length; at += blockEventsMax) {
      const block = own.slice(at, at + blockEventsMax);
      const firstId = uuidBytes(block[0]?.id ?? '');
      rows.push({ key: blockKey(prefix, firstId, block.length), value: Buffer.from(formatBlock(block)) });
      const byLedger = Map.groupBy(block.keys(), (place) => block[place]?.ledgerId ?? null);
      for (const [ledgerId, places] of byLedger) {
        if (ledgerId === null) continue;
        const key = blockKey(actorLedgerPrefix(prefix, ledgerId), firstId, places.length);
        rows.push({ key, value: formatPlaces(block.length, places) });
      }
    }
  }
  return rows;
}

/** The events that a key stands for, in their order. None if the window was dropped meanwhile. */
function readBlock(table: BytesTable, actorId: string, { ledgerId }: AccessPage, key: Uint8Array): AccessEvent[] {
  const found = table.get(key);
  if (found === undefined) return [];
  if (ledgerId === null) return eventsIn(actorId, found);
  const block = table.get(blockOfLedgerKey(actorPrefix(actorId), key, found));
  if (block === undefined) return [];
  const events = eventsIn(actorId, block);
  return placesOf(found)?.flatMap((place) => events[place] ?? []) ?? events;
}

function eventsIn(actorId: string, block: Uint8Array): AccessEvent[] {
  const stored = { kind: 'access_block', id: actorId, value: Buffer.from(block).toString('utf8') };
  return decodeOrPassOver(stored, (text) => parseBlock(actorId, text)) ?? [];
}
