import type { NodeUnderTest } from './node-under-test.ts';

type Node = Pick<NodeUnderTest, 'id' | 'logFile' | 'process' | 'start'>;

/**
 * A node that has ended though nobody told it to, in a sentence each. They are started again, so that what comes next
 * is measured on all.
 */
export async function startThoseThatEnded(nodes: readonly Node[]): Promise<string[]> {
  const ended = nodes.filter(({ process }) => process?.hasEnded() === true);
  await Promise.all(ended.map((node) => node.start()));
  return ended.map(({ id, logFile }) => `${id} ended though nobody told it to; see ${logFile}`);
}
