import { ownLedger, type ReadAttackOptions, type ReadTarget, readOn } from './read-target.ts';

/** Reads that look through many events and find none. */
export async function run(
  target: ReadTarget,
  signal: AbortSignal,
  connections: number,
  options: ReadAttackOptions = {},
): Promise<void> {
  const ledger = await ownLedger(target, signal, {
    events: options.events ?? 3_000,
    payloadBytes: 1_000,
    signed: false,
  });
  return readOn(target, ledger, 'event_type=NOPE', signal, connections, options);
}
