import { startBalancer } from '../../../cluster/local/balancer.ts';
import type { NodeUnderTest } from './node-under-test.ts';

/** One address in front of several nodes. */
interface NodesAtOneAddress extends AsyncDisposable {
  readonly baseUrl: string;
  readonly grpcUrl: string;
  add(node: NodeUnderTest): void;
}

export async function openOneAddress(nodes: readonly NodeUnderTest[]): Promise<NodesAtOneAddress> {
  const host = '127.0.0.1';
  const balancer = await startBalancer({ host, port: 0, grpcPort: 0 });
  const add = ({ baseUrl, grpcUrl, internalUrl }: NodeUnderTest) =>
    balancer.add({ host, port: portOf(baseUrl), grpcPort: portOf(grpcUrl), internalPort: portOf(internalUrl) });
  for (const node of nodes) add(node);
  return {
    baseUrl: `http://${host}:${balancer.port}`,
    grpcUrl: `http://${host}:${balancer.grpcPort}`,
    add,
    [Symbol.asyncDispose]: () => balancer[Symbol.asyncDispose](),
  };
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}
