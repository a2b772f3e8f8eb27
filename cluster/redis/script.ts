import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';

const digests = new Map<string, string>();

/**
 * Runs a script by its digest, or by its text if Redis does not know the digest. Resolves with its result as an array.
 */
export async function runScript(
  redis: Redis,
  script: string,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown[]> {
  const digest = digests.get(script) ?? createHash('sha1').update(script).digest('hex');
  digests.set(script, digest);
  const answer: unknown = await redis.evalsha(digest, keys.length, ...keys, ...args).catch((error: unknown) => {
    if (error instanceof Error && error.message.startsWith('NOSCRIPT'))
      return redis.eval(script, keys.length, ...keys, ...args);
    throw error;
  });
  return Array.isArray(answer) ? answer : [answer];
}
