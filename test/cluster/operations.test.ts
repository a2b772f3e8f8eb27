import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { afterMs } from '../../cluster/local/ports.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { compileCache } from '../support/compile-cache.ts';
import { startNpmScript } from '../support/npm-script.ts';
import { append, type Master, newMaster, newOrder, type Order } from '../support/parties.ts';
import { runCli } from '../support/scrub-cli.ts';
import { runCommand } from './campaign/run-command.ts';
import { type ClusterUnderTest, shardCount, startCluster } from './rig/cluster-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

const CLI = fileURLToPath(new URL('../../cluster/cli.ts', import.meta.url));
const movedMaxMs = 20_000;

/** `ledger-trust …` as a process. */
const ledgerTrust = (env: Readonly<Record<string, string>>, ...args: string[]) => runCommand(CLI, args, env, 30_000);

/** Metrics of docs/operations.md, each with a series that it must have. */
const metrics: readonly (readonly [what: string, series: RegExp])[] = [
  ['shards by state', /^svc_shards\{state="held"\} [1-9]/m],
  ['moves by reason', /^svc_shard_moves_total\{reason="acquired"\} [1-9]/m],
  ['hand-over seconds', /^svc_shard_hand_over_seconds_count \d/m],
  ['lease renew seconds', /^svc_lease_renew_seconds_count [1-9]/m],
  ['leases lost by cause', /^svc_leases_lost_total\{cause="ran_out"\} \d/m],
  ['claims by reason', /^svc_claims_total\{reason="activation"\} [1-9]/m],
  ['fenced appends', /^svc_fenced_appends_total \d/m],
  ['appends by result', /^svc_appends_total\{result="written"\} [1-9]/m],
  ['commit batch size', /^svc_commit_batch_events_count [1-9]/m],
  ['commit seconds', /^svc_commit_seconds_count [1-9]/m],
  ['unknown outcomes that were found written', /^svc_unknown_outcomes_total\{resolution="written"\} \d/m],
  ['unknown outcomes that were found not written', /^svc_unknown_outcomes_total\{resolution="not_written"\} \d/m],
  ['unknown outcomes that stayed so', /^svc_unknown_outcomes_total\{resolution="unsettled"\} \d/m],
  ['forwarded calls', /^svc_forwarded_calls_total\{result="answered"\} [1-9]/m],
  ['NOT_OWNER, as heard', /^svc_forwarded_calls_total\{result="not_owner"\} \d/m],
  ['NOT_OWNER, as answered', /^svc_not_owner_total \d/m],
  ['activation seconds', /^svc_activation_seconds_count [1-9]/m],
  ['mailbox depth', /^svc_mailbox_depth \d/m],
  ['event loop lag', /^nodejs_eventloop_lag_seconds \d/m],
  ['verification queue', /^svc_verification_queue \d/m],
  ['projection lag', /^svc_projection_lag_events \d/m],
];

await describeOnCassandra('operations of a cluster of three', (address) => {
  let cluster: ClusterUnderTest;
  let env: Record<string, string>;
  const pairs: { readonly order: Order; readonly master: Master }[] = [];
  const run = (...args: string[]) => runCli(env, ['cluster', ...args]);
  /** Appends to each ledger through each node. */
  const write = async (note: string) => {
    for (const { baseUrl } of cluster.nodes)
      for (const { order, master } of pairs)
        expect((await append({ ...master, base: baseUrl }, order.supplier, 'NOTED', { note })).status).toBe(200);
  };
  const sharesIn = (out: string) =>
    new Map(
      [...out.matchAll(/^(node-\d) +\S+ +(\w+) +(\d+) /gm)].map(([, id, state, shards]) => [
        id,
        { state, shards: Number(shards) },
      ]),
    );
  const untilShares = async (id: string, wanted: (shares: number) => boolean) => {
    const began = performance.now();
    for (;;) {
      const found = sharesIn((await run('status')).out).get(id);
      if (found !== undefined && wanted(found.shards)) return found;
      if (performance.now() - began > movedMaxMs) throw new Error(`${id} has ${found?.shards} shards still`);
      await afterMs(200);
    }
  };

  beforeAll(async () => {
    cluster = await startCluster({ nodes: 3, cassandra: address });
    await cluster.untilBalanced(movedMaxMs);
    env = { REDIS_URL: cluster.redis.current.url, ...cluster.cassandraEnv };
    for (let n = 0; n < 6; n += 1) {
      const made = await withRetries(() => newOrder(cluster.nodeAt(n % 3).baseUrl));
      pairs.push({ order: made, master: await withRetries(() => newMaster(made)) });
    }
    await write('first');
  }, 120_000);
  afterAll(() => cluster?.[Symbol.asyncDispose](), 60_000);

  const ledgerOf = (at: number) => pairs[at]?.order.ledgerId ?? '';

  test('status, shards and who-owns agree with every node', async () => {
    const { code, out } = await ledgerTrust(env, 'cluster', 'status');
    expect(code).toBe(0);
    const shares = sharesIn(out);
    expect([...shares.keys()]).toEqual(['node-1', 'node-2', 'node-3']);
    expect(out).toContain(`${shardCount} shards, 0 free, 0 of nodes that are gone`);
    const view = await cluster.nodeAt(1).view();
    const lines = (await run('shards')).out.trim().split('\n');
    expect(lines).toEqual(Object.entries(view.owners).map(([shard, owner]) => `${shard}\t${owner}`));
    for (const at of [0, 1, 2]) {
      const owner = await cluster.ownerOf(ledgerOf(at));
      expect((await run('who-owns', ledgerOf(at))).out).toMatch(new RegExp(`^shard \\d+: ${owner?.id}\n$`));
    }
  });

  test('/cluster has nodes, shards, owners, actors and moves', async () => {
    const view: unknown = await (await fetch(`${cluster.nodeAt(0).internalUrl}/cluster`)).json();
    expect(view).toMatchObject({
      node: 'node-1',
      members: [
        { id: 'node-1', draining: false, order: null, shardCount, shards: expect.any(Number) },
        { id: 'node-2' },
        { id: 'node-3' },
      ],
      shards: { held: expect.any(Number), leaving: 0, elsewhere: expect.any(Number) },
      owners_known: true,
      owners: expect.objectContaining({ 0: expect.stringMatching(/^node-/) }),
      moving: [],
      moves: { acquired: expect.any(Number), handed_over: expect.any(Number), lost: 0 },
      actors: { ledgers: expect.any(Number), waiting: 0 },
    });
  });

  test('drain empties a serving node, cordon keeps it empty, and uncordon returns shards', async () => {
    expect(await run('drain', 'node-2')).toEqual({ code: 0, out: 'node-2 is draining\n', err: '' });
    expect(await untilShares('node-2', (shards) => shards === 0)).toEqual({ state: 'draining', shards: 0 });
    await write('while node-2 has no shards');
    expect(await run('cordon', 'node-2')).toEqual({ code: 0, out: 'node-2 is cordoned\n', err: '' });
    await afterMs(2_000);
    expect(await untilShares('node-2', () => true)).toEqual({ state: 'cordoned', shards: 0 });
    expect(await run('uncordon', 'node-2')).toEqual({ code: 0, out: 'node-2 takes shards again\n', err: '' });
    expect((await untilShares('node-2', (shards) => shards > shardCount / 6)).state).toBe('serving');
    await write('all three again');
  }, 90_000);

  test.for(metrics)('after some traffic there are metrics of: %s', async ([, series]) => {
    const texts = await Promise.all(cluster.nodes.map((node) => node.metrics()));
    expect(texts.filter((text) => series.test(text))).not.toEqual([]);
    for (const text of texts)
      expect(text).toMatch(
        new RegExp(`^# HELP ${/svc_\w+|nodejs_\w+/.exec(series.source)?.[0].replace(/_count$/, '')} \\S+`, 'm'),
      );
  });

  test('verify finds nothing while nodes write', async () => {
    const writing = write('while it is verified');
    const one = await run('verify', ledgerOf(0));
    expect(one).toMatchObject({ code: 0, out: expect.stringMatching(/^GOOD {2}1 ledgers, \d+ events/), err: '' });
    const all = await run('verify', '--all');
    expect(all).toMatchObject({ code: 0, out: expect.stringMatching(/^GOOD {2}6 ledgers, \d+ events/), err: '' });
    await writing;
  }, 30_000);

  test.for([
    [['drain', 'node-9'], {}, /^ledger-trust: There is no node node-9: see `cluster status`\.\n$/],
    [['cordon', 'node-9'], {}, /^ledger-trust: There is no node node-9: see `cluster status`\.\n$/],
    [['who-owns', 'PO-1'], {}, /^ledger-trust: A ledger id is a UUID in lower case\.\n$/],
    [['status'], { REDIS_URL: '' }, /^ledger-trust: Set REDIS_URL to the address of Redis, such as .+\n$/],
    [
      ['status'],
      { REDIS_URL: 'redis://127.0.0.1:1' },
      /^ledger-trust: Set REDIS_URL to the Redis of the cluster: .*\n$/,
    ],
    [
      ['shards'],
      { CLUSTER_NAME: 'other' },
      /^ledger-trust: No node has announced itself there: check REDIS_URL and CLUSTER_NAME\.\n$/,
    ],
  ] as const)('%o with %o ends with one sentence', async ([args, wrong, sentence]) => {
    expect(await runCli({ ...env, ...wrong }, ['cluster', ...args])).toEqual({
      code: 1,
      out: '',
      err: expect.stringMatching(sentence),
    });
  });

  test('a refused start exits with 1 and a sentence on stderr', async () => {
    expect(await ledgerTrust(env, 'cluster', 'drain', 'node-9')).toEqual({
      code: 1,
      out: '',
      err: 'ledger-trust: There is no node node-9: see `cluster status`.\n',
    });
  });

  test('SIGTERM to npm run start:cluster exits with 0 after the node gave its shards away', async () => {
    const { PATH = '', HOME = '' } = process.env;
    const ports = { HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', INTERNAL_HOST: '127.0.0.1', INTERNAL_PORT: '0' };
    const env = { ...cluster.commonEnv, ...ports, ...compileCache, PATH, HOME, NODE_ID: 'node-4', LOG_LEVEL: 'silent' };
    await using npm = startNpmScript('start:cluster', env);
    await expect.poll(() => npm.said(), { timeout: 40_000 }).toContain('node node-4');
    expect(await untilShares('node-4', (shards) => shards > shardCount / 8)).toMatchObject({ state: 'serving' });
    const began = performance.now();
    expect(await npm.terminate()).toEqual([0, null]);
    expect(performance.now() - began).toBeLessThan(20_000);
    const { out } = await run('status');
    expect(sharesIn(out).has('node-4')).toBe(false);
    expect(out).toContain('0 of nodes that are gone');
    await write('without it');
  }, 90_000);
});
