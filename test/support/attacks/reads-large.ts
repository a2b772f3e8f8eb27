import { ownLedger, type ReadStatuses, type ReadTarget, readOn } from './read-target.ts';

/** Reads that look through 10 MB of the largest events. */
export async function run(
  target: ReadTarget,
  signal: AbortSignal,
  connections: number,
  statuses: ReadStatuses = new Map(),
): Promise<void> {
  const ledger = await ownLedger(target, signal, { events: 45, payloadBytes: 240_000, signed: false });
  return readOn(target, ledger, 'event_type=NOPE', signal, connections, statuses);
}
