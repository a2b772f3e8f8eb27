import type { NodeUnderTest } from './node-under-test.ts';

type Node = Pick<NodeUnderTest, 'id' | 'logFile' | 'process' | 'start'>;

/** Restarts each node that ended by itself. Returns a sentence for each. */
export async function startThoseThatEnded(nodes: readonly Node[]): Promise<string[]> {
  const ended = nodes.filter(({ process }) => process?.hasEnded() === true);
  await Promise.all(ended.map((node) => node.start()));
  return ended.map(({ id, logFile }) => `${id} ended by itself; see ${logFile}`);
}
