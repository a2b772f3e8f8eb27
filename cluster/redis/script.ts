import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';

const digests = new Map<string, string>();

/**
 * Runs a script by its digest. If Redis does not know the digest, sends the text. The first attempt then had no effect,
 * so this is not a retry. Returns the script's result as an array.
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
