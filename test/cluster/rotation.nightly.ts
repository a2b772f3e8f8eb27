import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRedisView } from '../../cluster/cli/redis-view.ts';
import { rotateClusterAuthority } from '../../cluster/cli/rotate-authority.ts';
import { afterMs } from '../../cluster/local/ports.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { newOrder, type Order } from '../support/parties.ts';
import { type RestAnswer, rest } from '../support/parties-rest.ts';
import { runCli } from '../support/scrub-cli.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';
import type { NodeUnderTest } from './rig/node-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

/** Longer than an event may be dated after the end of its key. */
const afterTheEndMs = 2_500;

await describeOnCassandra('a rotation of the authority beside running nodes', (address) => {
  let cluster: ClusterUnderTest;
  let order: Order;
  beforeAll(async () => {
    cluster = await startCluster({ nodes: 2, cassandra: address });
    order = await withRetries(() => newOrder(cluster.nodeAt(0).baseUrl));
  }, 60_000);
  afterAll(() => cluster?.[Symbol.asyncDispose](), 30_000);

  /** Opens a ledger, which needs a seal. */
  const open = ({ baseUrl }: NodeUnderTest): Promise<RestAnswer> =>
    rest(baseUrl, 'POST', '/v1/ledgers', order.buyer, { supplier_svc_id: order.supplier.svcId });
  const endsAtOnce = async (node: NodeUnderTest, why: RegExp) => {
    await expect(node.start()).rejects.toThrow(/has ended/);
    expect(readFileSync(node.logFile, 'utf8')).toMatch(why);
  };

  test('keeps every seal valid: no node seals after the end of its key or starts with another key', async () => {
    const [awake, asleep] = [cluster.nodeAt(0), cluster.nodeAt(1)];
    const keyFile = cluster.commonEnv.AUTHORITY_KEY_FILE ?? '';
    const next = join(cluster.dir, 'next.pem');
    writeFileSync(next, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const statuses: number[] = [];
    let stopped = false;
    const opening = (async () => {
      for (; !stopped; await afterMs(100)) statuses.push((await open(awake)).status);
    })();
    asleep.pause();
    const whenAwake = [1, 2, 3].map(() => open(asleep));

    const env = { ...cluster.commonEnv, CLUSTER_NAME: 'another' };
    await using view = await openRedisView(env);
    expect(await rotateClusterAuthority(env, next, view.board)).toMatch(/^svc:authority#key-2 /);
    await afterMs(afterTheEndMs);
    asleep.resume();
    for (const answer of await Promise.all(whenAwake)) expect(answer.code).toBe('unavailable');
    for (const node of [awake, asleep]) {
      expect(await open(node)).toMatchObject({ status: 503, code: 'unavailable' });
      await expect
        .poll(() => node.readiness(), { timeout: 10_000 })
        .toMatchObject({ status: 503, text: expect.stringContaining('AUTHORITY_KEY_FILE') });
    }
    stopped = true;
    await opening;
    expect(statuses.filter((status) => status < 300).length).toBeGreaterThan(5);
    expect(new Set(statuses.filter((status) => status >= 300))).toEqual(new Set([503]));

    await Promise.all([awake.terminate(), asleep.terminate()]);
    await endsAtOnce(awake, /AUTHORITY_KEY_FILE holds another key .*\n$/);
    renameSync(next, keyFile);
    const secretsFile = cluster.commonEnv.SECRETS_KEY_FILE ?? '';
    const secrets = readFileSync(secretsFile);
    writeFileSync(secretsFile, `${randomBytes(32).toString('base64')}\n`);
    await endsAtOnce(awake, /SECRETS_KEY_FILE holds another key .*\n$/);
    writeFileSync(secretsFile, secrets);
    await Promise.all([awake.start(), asleep.start()]);
    for (const node of [awake, asleep]) expect((await open(node)).status).toBeLessThan(300);
    const verified = await runCli(cluster.cassandraEnv, ['cluster', 'verify', '--all', '--json']);
    expect(JSON.parse(verified.out)).toMatchObject({ verdict: 'good', findings: [] });
  }, 90_000);
});
