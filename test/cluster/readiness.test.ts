import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { afterMs } from '../../cluster/local/ports.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { isNightly } from '../support/nightly.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';
import { type Cut, openCut } from './rig/cut.ts';
import { fixedPorts } from './rig/fixed-ports.ts';
import { layOutNode, type NodeUnderTest } from './rig/node-under-test.ts';

const stopDelayMs = 3_000;
/** The 10 s of a store that is lost and the 3 s in which others say so, and looks that time out. */
const storeLostMaxMs = 25_000;

await describeOnCassandra('readiness of two nodes', (address) => {
  const stack = new AsyncDisposableStack();
  let cluster: ClusterUnderTest;
  let other: NodeUnderTest;
  let node: NodeUnderTest;
  /** In the way of that one node to Cassandra. */
  let toCassandra: Cut;
  let clockFile = '';
  beforeAll(async () => {
    cluster = stack.use(await startCluster({ nodes: 1, cassandra: address }));
    const [first] = cluster.nodes;
    if (first === undefined) throw new Error('no node');
    other = first;
    const [host = '', port = ''] = (address.contactPoints[0] ?? '').split(':');
    const [cutPort = 0] = await fixedPorts(1);
    toCassandra = stack.use(await openCut({ host, port: Number(port) }, cutPort));
    clockFile = join(cluster.dir, 'clock-ahead-ms');
    const env = {
      ...cluster.commonEnv,
      CASSANDRA_CONTACT_POINTS: `127.0.0.1:${cutPort}`,
      STOP_DELAY_SECONDS: String(stopDelayMs / 1_000),
      // The clock of that one node is as many milliseconds ahead as a file says.
      NODE_OPTIONS: `--import=${new URL('./rig/shifted-clock.ts', import.meta.url)}`,
      TEST_CLOCK_FILE: clockFile,
    };
    const redisPort = Number(new URL(cluster.redis.current.url).port);
    node = stack.use(await layOutNode({ id: 'node-2', dir: cluster.dir, redisPort, env }));
    await node.start();
  }, 60_000);
  afterAll(() => stack.disposeAsync(), 30_000);

  const readinessOf = async ({ internalUrl }: NodeUnderTest) => {
    const answer = await fetch(`${internalUrl}/health/ready`);
    return { status: answer.status, text: await answer.text() };
  };

  test('one without the store is not ready until it is back, and the other one is', async () => {
    expect(await readinessOf(node)).toMatchObject({ status: 200 });
    toCassandra.set('silent');
    await expect
      .poll(() => readinessOf(node), { timeout: storeLostMaxMs })
      .toMatchObject({ status: 503, text: expect.stringContaining('the store does not answer this node') });
    expect(await readinessOf(other)).toMatchObject({ status: 200 });
    toCassandra.set('open');
    await expect.poll(() => readinessOf(node), { timeout: storeLostMaxMs }).toMatchObject({ status: 200 });
  }, 60_000);

  /** Parts: test/unit/cluster/clock-check.test.ts, test/unit/node/pipeline-wrong-clock.test.ts, attacks.nightly.ts. */
  if (isNightly)
    test('one with a wrong clock gives its shards away and writes nothing until its clock is right', async () => {
      const holds = async () => [...(await cluster.owners()).values()].filter((owner) => owner === 'node-2').length;
      const register = async () => {
        const body = JSON.stringify({
          organization_name: 'Acme',
          contact_email: 'dev@example.com',
          accept_terms: true,
        });
        const headers = { 'content-type': 'application/json' };
        return (await fetch(`${node.baseUrl}/v1/developer/register`, { method: 'POST', headers, body })).status;
      };
      await expect.poll(holds, { timeout: 15_000 }).toBeGreaterThan(60);
      writeFileSync(clockFile, String(3_600_000));
      await expect
        .poll(() => readinessOf(node), { timeout: 2_000 })
        .toMatchObject({ status: 503, text: expect.stringContaining('ms off the clock of the store') });
      expect(await register()).toBe(503);
      await expect.poll(holds, { timeout: 5_000 }).toBe(0);
      expect(await readinessOf(other)).toMatchObject({ status: 200 });
      writeFileSync(clockFile, '0');
      await expect.poll(() => readinessOf(node), { timeout: 2_000 }).toMatchObject({ status: 200 });
      expect(await register()).not.toBe(503);
      await expect.poll(holds, { timeout: 15_000 }).toBeGreaterThan(60);
    }, 60_000);

  test('one that stops is not ready at once and keeps serving while the balancer may need it', async () => {
    const began = performance.now();
    const stopped = node.terminate();
    await expect.poll(() => readinessOf(node), { timeout: 1_000 }).toMatchObject({ status: 503 });
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
});
