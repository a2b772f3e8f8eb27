import { afterAll } from 'vitest';
import { type NodeProcess, type ProcessEnvironment, startNodeProcess } from './node-process.ts';
import { type Master, newMaster, newOrder, type Order } from './parties.ts';
import { type RunningTestNode, runNode } from './running-node.ts';

/** A node for the tests of one file, and an order there. */
interface NodeWithOrder {
  readonly node: RunningTestNode;
  readonly base: string;
  readonly order: Order;
}

interface NodeWithMaster extends NodeWithOrder {
  readonly master: Master;
}

interface OrderOptions {
  /** false: its parties have no keys, for tests of what comes before signatures or has nothing to do with them. */
  readonly keyed?: boolean;
}

/** Called at the head of a test file; the node ends with the file's tests. */
export async function nodeForTests(): Promise<RunningTestNode> {
  const node = await runNode();
  afterAll(() => node[Symbol.asyncDispose]());
  return node;
}

export async function nodeWithOrder(options: OrderOptions = {}): Promise<NodeWithOrder> {
  const node = await nodeForTests();
  return { node, base: node.base, order: await newOrder(node.base, options) };
}

export async function nodeWithMaster(options: OrderOptions = {}): Promise<NodeWithMaster> {
  const there = await nodeWithOrder(options);
  return { ...there, master: await newMaster(there.order) };
}

/** Returns a function that starts a node as a process. All of them are killed after the suite. */
export function suiteProcesses(): (env: ProcessEnvironment) => Promise<NodeProcess> {
  const nodes: NodeProcess[] = [];
  afterAll(() => Promise.all(nodes.map(({ kill }) => kill())));
  return async (env) => {
    const node = await startNodeProcess(env);
    nodes.push(node);
    return node;
  };
}
