import { ownLedger, type ReadAttackOptions, type ReadTarget, readOn } from './read-target.ts';

/** Reads that have a thousand signatures verified each. */
export async function run(
  target: ReadTarget,
  signal: AbortSignal,
  connections: number,
  options: ReadAttackOptions = {},
): Promise<void> {
  const ledger = await ownLedger(target, signal, { events: options.events ?? 1_000, payloadBytes: 100, signed: true });
  return readOn(target, ledger, 'verify=signatures', signal, connections, options);
}
