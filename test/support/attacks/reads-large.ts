import { ownLedger, type ReadAttackOptions, type ReadTarget, readOn } from './read-target.ts';

/** Reads that look through 10 MB of the largest events. */
export async function run(
  target: ReadTarget,
  signal: AbortSignal,
  connections: number,
  options: ReadAttackOptions = {},
): Promise<void> {
  const ledger = await ownLedger(target, signal, {
    events: options.events ?? 45,
    payloadBytes: 240_000,
    signed: false,
  });
  return readOn(target, ledger, 'event_type=NOPE', signal, connections, options);
}
