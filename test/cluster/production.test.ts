import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { append, entityRequest, eventsOf, newDevice, newMaster, newOrder } from '../support/parties.ts';
import { done, expectRefused, rest } from '../support/parties-rest.ts';
import { suiteDir } from '../support/running-node.ts';
import { expectPassed, storyWithoutWebhook } from '../support/sandbox-story.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';
import { peerCertificate } from './rig/peer-certificate.ts';
import { withRetries } from './rig/with-retries.ts';

const dir = suiteDir();

await describeOnCassandra('a cluster in production mode', (address) => {
  let cluster: ClusterUnderTest;
  let bases: readonly string[] = [];

  beforeAll(async () => {
    const env = {
      SVC_MODE: 'production',
      TLS_TERMINATED: '1',
      LOG_ORIGIN: 'ledger.example/v1',
      ...peerCertificate(dir),
    };
    cluster = await startCluster({ nodes: 2, cassandra: address, env });
    await cluster.untilBalanced(60_000);
    bases = cluster.nodes.map(({ baseUrl }) => baseUrl);
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  test('forwards calls over mutual TLS, and every node reads what another wrote', async () => {
    const [base = ''] = bases;
    const order = await withRetries(() => newOrder(base));
    const master = await withRetries(() => newMaster(order));
    // A node writes by itself until it knows the owner of the ledger's shard.
    const forwarded = async () => {
      for (const at of bases)
        expect((await append({ ...master, base: at }, order.supplier, 'NOTED', { note: at })).status).toBe(200);
      const texts = await Promise.all(cluster.nodes.map((node) => node.metrics()));
      return /^svc_forwarded_calls_total\{result="answered"\} [1-9]/m.test(texts.join('\n'));
    };
    await expect.poll(forwarded, { timeout: 10_000, interval: 500 }).toBe(true);
    const read = await Promise.all(bases.map((at) => eventsOf(at, order.supplier, order.ledgerId)));
    expect(read[0]?.length).toBeGreaterThan(2);
    expect(read[1]).toEqual(read[0]);
  }, 60_000);

  test('refuses unsigned calls of entities, and accepts a signed call once at all nodes', async () => {
    const [one = '', other = ''] = bases;
    const device = await withRetries(() => newDevice(one, { keyed: true }));
    const path = '/v1/entities/root-ledger';
    const post = (base: string, headers: Readonly<Record<string, string>>) => rest(base, 'POST', path, { headers });
    for (const base of bases) expectRefused(await post(base, device.headers), 401, 'signature_required');
    const { signed, made } = await withRetries(async () => {
      const signed = entityRequest(device, 'POST', path, '');
      return { signed, made: await done(one, 'POST', path, { headers: signed }) };
    });
    expectRefused(await post(other, signed), 401, 'invalid_signature');
    const reading = `/v1/ledgers/${made.text('ledger_id')}/events`;
    expectRefused(await rest(other, 'GET', reading, { headers: device.headers }), 401, 'signature_required');
    expect((await rest(other, 'GET', reading, { headers: entityRequest(device, 'GET', reading, '') })).status).toBe(
      200,
    );
  });

  test('says at every node that this host speaks TLS only', async () => {
    const answers = await Promise.all(bases.map((base) => rest(base, 'GET', '/health')));
    for (const { headers } of answers) expect(headers.get('strict-transport-security')).toBe('max-age=31536000');
  });

  test('skips the webhook in the sandbox run, and publishes one trust anchor', async () => {
    expectPassed(await (await fetch(`${bases[1]}/v1/sandbox/run`)).text(), storyWithoutWebhook);
    const [anchor, same] = await Promise.all(bases.map((base) => done(base, 'GET', '/.well-known/svc-authority')));
    expect(anchor?.body).toMatchObject({ phase: '2', keys: [{ kid: 'svc:authority#key-1', valid_to: null }] });
    expect(same?.body).toEqual(anchor?.body);
  });
});
