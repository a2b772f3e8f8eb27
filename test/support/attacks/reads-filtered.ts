import { ownLedger, type ReadStatuses, type ReadTarget, readOn } from './read-target.ts';

/** Reads that look through many events and find none. */
export async function run(
  target: ReadTarget,
  signal: AbortSignal,
  connections: number,
  statuses: ReadStatuses = new Map(),
): Promise<void> {
  const ledger = await ownLedger(target, signal, { events: 3_000, payloadBytes: 1_000, signed: false });
  return readOn(target, ledger, 'event_type=NOPE', signal, connections, statuses);
}
