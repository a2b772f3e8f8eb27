import { provisionBackends } from '../../support/backends/provision.ts';
import { startCluster } from '../rig/cluster-under-test.ts';
import { openSpreadingGrpc, openSpreadingHttp } from './spreading-proxy.ts';

/**
 * Starts three nodes for the whole API suite. TEST_CLUSTER_API: `one` sends all requests to the first node, `spread`
 * each request to the next one. Test processes read the addresses from the environment (running-node.ts).
 */
export default async function setup(): Promise<() => Promise<void>> {
  const stack = new AsyncDisposableStack();
  const backends = stack.use(provisionBackends(process.env));
  const cassandra = await backends.cassandra();
  if (cassandra.kind === 'missing') throw new Error(`there is no Cassandra here: ${cassandra.reason}`);
  const cluster = stack.use(
    await startCluster({ nodes: 3, cassandra: cassandra.address, env: { LOG_LEVEL: 'info', LEASE_TTL_MS: '15000' } }),
  );
  await cluster.untilBalanced(60_000);
  const first = cluster.nodeAt(0);
  const addresses = { base: first.baseUrl, grpcAddress: new URL(first.grpcUrl).host, opsBase: first.internalUrl };
  if (process.env.TEST_CLUSTER_API === 'spread') {
    const http = stack.use(await openSpreadingHttp(cluster.nodes.map(({ baseUrl }) => Number(new URL(baseUrl).port))));
    const grpc = stack.use(await openSpreadingGrpc(cluster.nodes.map(({ grpcUrl }) => Number(new URL(grpcUrl).port))));
    addresses.base = `http://127.0.0.1:${http.port}`;
    addresses.grpcAddress = `127.0.0.1:${grpc.port}`;
  }
  const logFiles = cluster.nodes.map(({ logFile }) => logFile);
  process.env.TEST_CLUSTER_ADDRESSES = JSON.stringify({ ...addresses, logFiles, dataDir: cluster.dir });
  return () => stack.disposeAsync();
}
