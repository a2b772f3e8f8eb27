import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { append, eventsOf, newMaster, newOrder } from '../support/parties.ts';
import { askedAgain } from './rig/asked-again.ts';
import { startCluster } from './rig/cluster-under-test.ts';

const dir = mkdtempSync(join(tmpdir(), 'ledger-production-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** A certificate that nodes prove themselves with to each other, which is its own authority. */
function peerCertificate(): Record<string, string> {
  const [cert, key] = [join(dir, 'node.pem'), join(dir, 'node.key')];
  const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1'];
  execFileSync('openssl', [...kind, '-keyout', key, '-out', cert, '-subj', '/CN=nodes'], { stdio: 'pipe' });
  return { CLUSTER_TLS_CA_FILE: cert, CLUSTER_TLS_CERT_FILE: cert, CLUSTER_TLS_KEY_FILE: key };
}

await describeOnCassandra('a cluster in production mode', (address) => {
  test('forwards over mutual TLS, and what one node wrote the others read', async () => {
    const env = { SVC_MODE: 'production', TLS_TERMINATED: '1', ...peerCertificate() };
    await using cluster = await startCluster({ nodes: 2, cassandra: address, env });
    await cluster.untilBalanced(30_000);
    const bases = cluster.nodes.map(({ baseUrl }) => baseUrl);
    const [base = ''] = bases;
    const order = await askedAgain(() => newOrder(base));
    const master = await askedAgain(() => newMaster(order));
    // A node forwards once it has heard who owns the ledger's shard, and writes by itself until then.
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
});
