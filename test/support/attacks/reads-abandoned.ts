import { ownLedger, type ReadAttackOptions, type ReadTarget, readOn } from './read-target.ts';

/** Reads whose caller is gone after some milliseconds. */
export async function run(
  target: ReadTarget,
  signal: AbortSignal,
  connections: number,
  { statuses = new Map(), events = 3_000 }: ReadAttackOptions = {},
): Promise<void> {
  const ledger = await ownLedger(target, signal, { events, payloadBytes: 1_000, signed: false });
  return readOn(target, ledger, 'event_type=NOPE', signal, connections, statuses, 30);
}
