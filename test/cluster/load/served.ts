import { isCertain, type LoadAttempt } from './load-history.ts';

/**
 * How long each shard served nobody at most, in milliseconds, by its number: from the beginning of an attempt to write
 * to it until one that began then or later had a certain answer, with the caller's own rest before it tries again. Of
 * attempts that began from `fromMs` to `toMs`, without those that asked no node: they say nothing of the shard, which
 * is served by others. Infinity: none had an answer.
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
  // From the last to the first, so that what is known of a shard is when those that began later ended.
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
