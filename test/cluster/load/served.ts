import { isCertain, type LoadAttempt } from './load-history.ts';

/**
 * Returns the longest time, ms, that each shard served nobody: from the beginning of an attempt to write to it until
 * the first certain answer to an attempt that began then or later. Counts attempts that began from `fromMs` to `toMs`,
 * and ignores attempts that reached no node. Infinity: no attempt had an answer.
 */
export function unserved(
  calls: readonly LoadAttempt[],
  shardOf: (ledgerId: string) => number,
  fromMs: number,
  toMs: number,
): Map<number, number> {
  const longest = new Map<number, number>();
  const firstEndMs = new Map<number, number>();
  const asked = calls.filter(({ unsent, beganMs }) => !unsent && beganMs >= fromMs);
  // From the last to the first attempt, so that `firstEndMs` is of the later ones.
  for (const { command, result, beganMs, endedMs } of asked.sort((a, b) => b.beganMs - a.beganMs)) {
    const shard = shardOf(command.ledgerId);
    const servedMs = Math.min(
      firstEndMs.get(shard) ?? Number.POSITIVE_INFINITY,
      isCertain(result) ? endedMs : Infinity,
    );
    firstEndMs.set(shard, servedMs);
    if (beganMs <= toMs) longest.set(shard, Math.max(longest.get(shard) ?? 0, servedMs - beganMs));
  }
  return longest;
}
