import { isSameHash } from '../../domain/log/tree.ts';
import type { SignedHead } from '../../store/signed-heads.ts';
import type { ExpectedTrees } from './expected-trees.ts';

/**
 * Says in words why a log is behind: it lacks events that were signed, or has others in their place. Returns null if it
 * is not. `head` was read before. Throws as ExpectedTrees does.
 */
export async function whyBehind(trees: ExpectedTrees, origin: string, head: SignedHead): Promise<string | null> {
  const { size, root } = head;
  const log = await trees.logOf(origin);
  if (log === null || !(await trees.reaches(log, size)))
    return `${origin}: ${size} events of it were signed, and the store has fewer`;
  if (!isSameHash(await trees.root(log, size), root))
    return `${origin}: its first ${size} events are not those that were signed`;
  return null;
}
