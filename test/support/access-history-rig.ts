import { randomBytes } from 'node:crypto';
import { LedgerError } from '../../src/domain/errors.ts';
import { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { queueBounds } from '../../src/runtime/limits/queue-bounds.ts';
import { AccessQueue } from '../../src/service/audit/access-history.ts';
import type { AccessRecord } from '../../src/service/audit/access-record.ts';
import type { AccessEvent, AccessLog } from '../../src/store/access-log.ts';
import { ManualClock, settled } from './clock.ts';
import { MemoryAccessLog } from './memory-store/access-log.ts';

export const actorId = '0199aaaa-0000-7000-8000-000000000001';
export const startMs = Date.UTC(2026, 10, 21);
export const unavailable = () => new LedgerError('unavailable', 'The store is away.');

const budgetBytes = 256 * 1024 * 1024;
export const { accessRecordsMax: heldRecordsMax, accessRecordsWait: waitRecords } = queueBounds(budgetBytes);

/** A queue over a memory log whose writes a test can make fail, or hang. */
export function accessHistoryRig() {
  const clock = new ManualClock(startMs);
  const stored = new MemoryAccessLog();
  const memory = new MemoryBudget(budgetBytes);
  const appends: (readonly AccessEvent[])[] = [];
  const reports: string[] = [];
  const store = { fault: null as Error | null, gate: null as Promise<void> | null };
  const log: AccessLog = {
    append: async (events) => {
      appends.push(events);
      await store.gate;
      if (store.fault !== null) throw store.fault;
      await stored.append(events);
    },
    list: (id, page) => stored.list(id, page),
    sweep: (before) => stored.sweep(before),
  };
  const report = {
    failing: (error: unknown, held: number) => void reports.push(`failing ${error instanceof Error} ${held}`),
    recovered: () => void reports.push('recovered'),
    lost: (records: number, cause: unknown) => void reports.push(`lost ${records} ${cause === null}`),
  };
  const queue = new AccessQueue({ log, memory, clock, random: randomBytes, report });
  let made = 0;
  const record = (over: Partial<AccessRecord> = {}): AccessRecord => ({
    actorId,
    apiKeyId: null,
    ledgerId: null,
    method: 'GET',
    path: '/v1/ledgers',
    responseStatus: 200,
    at: clock.now(),
    requestId: `${made++}`,
    ...over,
  });
  return {
    clock,
    store,
    queue,
    log,
    appends,
    reports,
    record,
    note: (count: number) => Array.from({ length: count }, () => queue.note(record(), actorId)),
    heldBytes: () => memory.heldBytes('queue'),
    stored: () => stored.list(actorId, { ledgerId: null, since: 0, limit: 1_000_000, offset: 0, descending: false }),
  };
}

export const numbers = (events: readonly AccessEvent[]) => events.map((event) => Number(event.requestId));
export const upTo = (count: number) => Array.from({ length: count }, (_, at) => at);

/** Whether a promise is settled once everything else has gone on. */
export async function isOpen(promise: Promise<unknown> | undefined): Promise<boolean> {
  let open = true;
  void promise?.then(() => {
    open = false;
  });
  await settled();
  return open;
}
