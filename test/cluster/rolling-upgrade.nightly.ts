import { createPrivateKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { afterMs } from '../../cluster/local/ports.ts';
import { publicKeyBase64 } from '../../src/client/index.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { KeptNotes, type ReadLog } from '../support/kept-notes.ts';
import { knownKey } from '../support/log-keys.ts';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { appendRepeatedly } from '../support/repeated-appends.ts';
import { suiteDir } from '../support/running-node.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';
import { peerCertificate } from './rig/peer-certificate.ts';
import { withRetries } from './rig/with-retries.ts';

/** A checkout of a version without checkpoints. Without it the old nodes are of this version, made to seem older. */
const olderCheckout = process.env.OLDER_CHECKOUT;
const serviceName = 'ledger.example/v1';
const balancedMaxMs = 180_000;
/** Long, because a node that renews late on a busy machine claims again, which says nothing about checkpoints. */
const leaseTtlMs = 30_000;
const appliedMaxMs = 120_000;
const restMs = 3_000;
/** Calls at a ledger without load, each after another append. */
const quietCalls = 100;
/** How long calls beside the load of a cluster without old nodes must cause no claim. */
const loadedMs = 5_000;
/** A node may lose its leases nevertheless. */
const loadedTriesMax = 4;
const upgradedName = 'upgraded';

/** The claims of all nodes by reason, and the appends that a claim shut out. */
async function claimsOf({ nodes }: ClusterUnderTest): Promise<readonly string[]> {
  const texts = await Promise.all(nodes.map((node) => node.metrics()));
  return texts.flatMap((text, at) =>
    [...text.matchAll(/^svc_(?:claims|fenced_appends)_total.*$/gm)].map(([line]) => `node ${at}: ${line}`),
  );
}

/**
 * Calls for proofs at all nodes, beside appends, until a while of it passed without a claim. Returns how many tries it
 * took.
 */
async function expectNoClaims(cluster: ClusterUnderTest, notes: KeptNotes, logs: readonly ReadLog[]): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    const before = await claimsOf(cluster);
    const began = performance.now();
    const answered = cluster.nodes.map(() => 0);
    for (let turn = 0; performance.now() - began < loadedMs; turn += 1)
      await Promise.all(
        cluster.nodes.flatMap(({ baseUrl }, at) =>
          logs.map(async (log) => {
            if ((await notes.ask(baseUrl, log, turn))?.status === 200) answered[at] = (answered[at] ?? 0) + 1;
          }),
        ),
      );
    const after = await claimsOf(cluster);
    if (tries < loadedTriesMax && !isDeepStrictEqual(after, before)) continue;
    expect(after).toEqual(before);
    expect(Math.min(...answered)).toBeGreaterThan(0);
    return tries;
  }
}

const oldNodes = olderCheckout === undefined ? 'nodes without the proof methods' : 'nodes of an older version';

await describeOnCassandra(`a cluster whose ${oldNodes} are replaced one by one`, (address) => {
  const dir = suiteDir();

  test('answers rightly, or route_not_found, or retryably, and checkpoints fence no owner', {
    timeout: 1_200_000,
  }, async () => {
    const seemingOlder = { NODE_OPTIONS: `--import=${new URL('./rig/without-proofs.ts', import.meta.url)}` };
    // With certificates, because a cluster without them may have to be stopped for an upgrade.
    const common = { LOG_ORIGIN: serviceName, LEASE_TTL_MS: String(leaseTtlMs), ...peerCertificate(dir) };
    const env = olderCheckout === undefined ? { ...common, ...seemingOlder } : common;
    await using cluster = await startCluster({ nodes: 3, cassandra: address, env, olderCheckout });
    await cluster.untilBalanced(balancedMaxMs);
    const { baseUrl } = cluster.nodeAt(0);
    const order = await withRetries(() => newOrder(baseUrl, { keyed: false }));
    const masters = [await newMaster(order), await newMaster(order, order.supplier, 'PO-2')];
    // Old nodes do not publish the key.
    const logKey = createPrivateKey(readFileSync(String(cluster.commonEnv.LOG_KEY_FILE)));
    const notes = new KeptNotes(serviceName, [knownKey(publicKeyBase64(logKey))]);
    const logs = notes.logsOf(order, masters);
    let isRunning = true;
    let appended = 0;
    const load = Promise.all([
      appendRepeatedly({
        masters,
        by: order.buyer,
        name: 'n',
        lanes: 6,
        isWanted: () => isRunning,
        baseOf: (lane, attempt) => cluster.nodeAt((lane + attempt) % 3).baseUrl,
        onAnswer: (count) => {
          appended = count;
        },
      }),
      notes.askRepeatedly({
        logs,
        callers: 6,
        isWanted: () => isRunning,
        baseOf: (caller) => cluster.nodeAt(caller % 3).baseUrl,
        untilBack: () => afterMs(50),
      }),
    ]);
    const signedSizes: number[] = [];
    const appends: number[] = [];
    const rest = async () => {
      await afterMs(restMs);
      signedSizes.push(notes.counts.sizes);
      appends.push(appended);
    };
    const upgraded = async () => {
      await rest();
      // As docs/operations.md says: once, beside the old nodes. With an older checkout they lack its tables until here.
      await expect.poll(() => cluster.applySchema(), { timeout: appliedMaxMs }).toContain('is ready');
      for (const node of cluster.nodes) {
        await rest();
        writeFileSync(join(cluster.dir, node.id, upgradedName), '');
        expect(await node.terminate()).toMatchObject({ code: 0 });
        await node.start();
      }
      await rest();
      await cluster.untilBalanced(balancedMaxMs);
      await rest();
      const tries = await expectNoClaims(cluster, notes, logs);
      await rest();
      return tries;
    };
    const ended = upgraded().finally(() => {
      isRunning = false;
    });
    const [, triesWithLoad] = await Promise.all([load, ended]);
    const underLoad = Object.fromEntries(notes.answers);
    // Nothing was signed before the first new node, and appends went on at each step.
    expect([...signedSizes.slice(0, 2), underLoad['200'], underLoad['404 route_not_found']]).toEqual([
      0,
      0,
      expect.any(Number),
      expect.any(Number),
    ]);
    expect(appends.filter((count, at) => count <= (appends[at - 1] ?? 0))).toEqual([]);
    const others = Object.keys(underLoad).filter(
      (name) => !/^(200|404 route_not_found|no answer|503 unavailable( tree_building)?)$/.test(name),
    );
    expect(others).toEqual([]);

    // Makes the tiles that a node lacks.
    const counts = await notes.expectConsistent(cluster.nodeAt(2).baseUrl);
    const owner = await cluster.ownerOf(order.ledgerId);
    const [master] = masters;
    if (owner === null || master === undefined) throw new Error('no owner, or no master');
    const appendAtOwner = () =>
      withRetries(async () => {
        const { status, raw } = await append({ ...master, base: owner.baseUrl }, order.buyer, 'NOTED', { quiet: true });
        if (status !== 200) throw new Error(raw);
      });
    await appendAtOwner();
    const before = await claimsOf(cluster);
    expect(before.join('\n')).toMatch(/svc_claims_total\{reason="activation"\} [1-9]/);
    let signed = 0;
    for (let n = 0; n < quietCalls; n += 1) {
      await appendAtOwner();
      const { baseUrl } = cluster.nodeAt(n % 3);
      const answers = await Promise.all(logs.map((log) => notes.ask(baseUrl, log, n)));
      for (const answer of answers) {
        if (answer?.status === 200) signed += 1;
        // On a busy machine an answer may come too late.
        else expect([answer?.code, answer?.raw]).toEqual(['unavailable', expect.stringMatching(/in time|call ended/)]);
      }
    }
    expect(signed).toBeGreaterThan(2 * quietCalls);
    expect(await claimsOf(cluster)).toEqual(before);

    await notes.expectConsistent(cluster.nodeAt(1).baseUrl);
    process.stdout.write(
      `rolling upgrade: ${JSON.stringify({ appends, ...counts, signedSizes, triesWithLoad, underLoad })}\n`,
    );
    for (const node of cluster.nodes)
      for (const kind of ['store', 'ledger', 'master'])
        expect([node.id, kind, await node.counted(`svc_log_behind{kind="${kind}"}`)]).toEqual([node.id, kind, 0]);
  });
});
