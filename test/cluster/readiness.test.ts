import { afterAll, beforeAll, expect, test } from 'vitest';
import { afterMs } from '../../cluster/local/ports.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { clusterMain, furtherSignalMs, startNodeProcess } from '../support/node-process.ts';
import { openSocket } from '../support/raw-http.ts';
import { endUnread, leaveLines } from '../support/unread-output.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';
import { type Cut, openCut } from './rig/cut.ts';
import { fixedPorts } from './rig/fixed-ports.ts';
import { layOutNode, type NodeUnderTest } from './rig/node-under-test.ts';

const stopDelayMs = 3_000;
/** The store counts as lost after 10 s, other nodes announce that for 3 s, and looks may time out. */
const storeLostMaxMs = 25_000;

await describeOnCassandra('readiness of two nodes', (address) => {
  const stack = new AsyncDisposableStack();
  let cluster: ClusterUnderTest;
  let other: NodeUnderTest;
  let node: NodeUnderTest;
  /** Why `node` was not ready while it started, and whether its ports accepted connections once it was. */
  const reasons = new Set<string>();
  let accepts: readonly boolean[] = [];
  /** Between `node` and Cassandra. */
  let toCassandra: Cut;
  beforeAll(async () => {
    cluster = stack.use(await startCluster({ nodes: 1, cassandra: address }));
    other = cluster.nodeAt(0);
    const [host = '', port = ''] = (address.contactPoints[0] ?? '').split(':');
    const [cutPort = 0] = await fixedPorts(1);
    toCassandra = stack.use(await openCut({ host, port: Number(port) }, cutPort));
    const env = {
      ...cluster.commonEnv,
      CASSANDRA_CONTACT_POINTS: `127.0.0.1:${cutPort}`,
      STOP_DELAY_SECONDS: String(stopDelayMs / 1_000),
    };
    const redisPort = Number(new URL(cluster.redis.current.url).port);
    node = stack.use(await layOutNode({ id: 'node-2', dir: cluster.dir, redisPort, env }));
    await node.start({ ready: false });
    for (;;) {
      const { status, text } = await node.readiness().catch(() => ({ status: 0, text: '' }));
      if (status === 200) break;
      if (status > 0) reasons.add((JSON.parse(text) as { reason: string }).reason);
      expect(node.process?.hasEnded()).toBe(false);
      await new Promise(setImmediate);
    }
    accepts = await Promise.all([node.baseUrl, node.grpcUrl].map(acceptsAt));
  }, 60_000);
  afterAll(() => stack.disposeAsync(), 30_000);

  test('a node that starts is ready once its ports accept connections, and tells the reason before', () => {
    expect([...reasons]).toContain('starting: not all ports are open yet');
    expect(accepts).toEqual([true, true]);
  });

  test('a node without the store is not ready, while the other one is', async () => {
    expect(await node.readiness()).toMatchObject({ status: 200 });
    toCassandra.set('silent');
    await expect
      .poll(() => node.readiness(), { timeout: storeLostMaxMs })
      .toMatchObject({ status: 503, text: expect.stringContaining('the store does not answer this node') });
    expect(await other.readiness()).toMatchObject({ status: 200 });
    toCassandra.set('open');
    await expect.poll(() => node.readiness(), { timeout: storeLostMaxMs }).toMatchObject({ status: 200 });
  }, 60_000);

  test('a node that stops is not ready at once, and serves for the delay of its stop', async () => {
    const began = performance.now();
    const stopped = node.terminate();
    await expect.poll(() => node.readiness(), { timeout: 1_000 }).toMatchObject({ status: 503 });
    let answered = 0;
    while (performance.now() - began < stopDelayMs - 500) {
      expect((await fetch(`${node.baseUrl}/v1/legal/terms`)).status).toBe(200);
      answered += 1;
      await afterMs(100);
    }
    expect(answered).toBeGreaterThan(10);
    const { code, tookMs } = await stopped;
    expect(code).toBe(0);
    expect(tookMs).toBeGreaterThan(stopDelayMs);
  }, 40_000);

  test('a node whose stdout and stderr nobody reads ends on SIGTERM within its drain time, with exit code 0', async () => {
    const [internal = 0] = await fixedPorts(1);
    await using unread = await startNodeProcess(
      {
        ...cluster.commonEnv,
        NODE_ID: 'node-3',
        INTERNAL_HOST: '127.0.0.1',
        INTERNAL_PORT: String(internal),
        ADVERTISE_ADDRESS: `127.0.0.1:${internal}`,
        DATA_DIR: `${cluster.dir}/node-3`,
        LOG_LEVEL: 'info',
      },
      [],
      clusterMain,
    );
    unread.child.stdout?.pause();
    unread.child.stderr?.pause();
    await leaveLines(unread);
    const { code, tookMs, bound } = await endUnread(unread, 'SIGTERM');
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(bound(9_000));
  }, 90_000);

  test('a second signal later ends a node at once, with exit code 1', async () => {
    await node.start();
    const { process: running } = node;
    if (running === null) throw new Error('the node does not run');
    process.kill(running.pid, 'SIGTERM');
    await afterMs(furtherSignalMs);
    process.kill(running.pid, 'SIGINT');
    expect(await running.ended).toBe(1);
  }, 40_000);
});

function acceptsAt(url: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = openSocket(Number(new URL(url).port));
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  return promise.finally(() => socket.destroy());
}
