import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { injectedFields } from '../../src/domain/event/service-events.ts';
import { canonicalJson } from '../../src/domain/json/canonical.ts';
import { sha256Buffer } from '../../src/domain/keys/hash-buffer.ts';
import { type Checkpoint, verifyCheckpoint } from '../../src/domain/log/checkpoint.ts';
import { endorsementDigest } from '../../src/domain/log/endorsement.ts';
import { isConsistent } from '../../src/domain/log/tree-proof.ts';
import { sleep } from '../../src/runtime/clock/clock.ts';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import { BehindLogs } from '../../src/service/log-identity/behind-logs.ts';
import { writeLog } from '../../src/service/log-identity/log-record.ts';
import { CertainHeads } from '../../src/service/proofs/certain-heads.ts';
import { Checkpoints } from '../../src/service/proofs/checkpoints.ts';
import { LogRows } from '../../src/service/proofs/log-rows.ts';
import { LogTrees } from '../../src/service/proofs/log-trees.ts';
import type { Log } from '../../src/service/proofs/proven-logs.ts';
import { unboundedWalk } from '../../src/service/walking/walk.ts';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import { formatSignedHead } from '../../src/store/signed-heads.ts';
import type { HashPlace } from '../../src/store/tile-store.ts';
import { formatHashes } from '../../src/store/tile-value.ts';
import { environmentOf, execute, makeKeyspace, openStores, suiteSettings } from '../contract/cassandra-factory.ts';
import { treeValues } from '../contract/cassandra-tree-values.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { chainEntries } from '../support/chain-entries.ts';
import { append, createMaster, ledgerId, masterId, openLedger, uuid } from '../support/commands.ts';
import { vectorKey, vectorSigner } from '../support/log-keys.ts';
import { runCli } from '../support/scrub-cli.ts';
import { authority, authorityPublicKey, chainOf, start } from '../support/world.ts';

const { serviceName } = vectorSigner;
const ledgerLog: Log = { kind: 'ledger', id: ledgerId, ledgerId };
const masterLog: Log = { kind: 'master', id: masterId, ledgerId };
const origins = { ledger: `${serviceName}/ledgers/${ledgerId}`, master: `${serviceName}/masters/${masterId}` };
const treeTables = ['tile', 'tile_hash'];
/** Longer than Cassandra takes to write a changed table out, at the settings of the test that waits for it. */
const writtenOutMs = 500;
/** One full tile, and more rows behind it than are read each time. */
const events = 300;

interface Report {
  readonly findings: readonly {
    readonly type: string;
    readonly detail: string;
    readonly table: string;
    readonly key: string;
    readonly remedy: string;
  }[];
  readonly tree_values: number;
  readonly signed_heads: number;
  readonly tree_values_removed: number;
}

await describeOnCassandra('cluster verify of the trees of a keyspace', (address) => {
  const settings = suiteSettings(address);
  let stores: CassandraStores;

  beforeAll(async () => {
    await makeKeyspace(settings);
    stores = await openStores(settings, Date.now);
    const publicKey = Buffer.from(authorityPublicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64');
    const key = { kid: authority.keyId, publicKey, validFrom: start, validTo: null, startSig: null };
    const value = JSON.stringify({ keys: [key] });
    await stores.records.put({ kind: 'authority', id: 'keys', replaces: 'absent', value, lookups: [] });
    const digest = Buffer.from(endorsementDigest({ serviceName, publicKey: vectorSigner.publicKey }));
    const logKey = {
      publicKey: Buffer.from(vectorSigner.publicKey).toString('base64'),
      validFrom: start,
      validTo: null,
      endorsement: { kid: authority.keyId, sig: authority.sign(digest, start) },
    };
    const { storeId } = stores.stamp;
    await writeLog(
      stores.records,
      { origin: serviceName, keys: [logKey], previous: [], keyspaceId: storeId },
      'absent',
    );
    const chain = chainOf(openLedger(), createMaster());
    const [facts, master] = [chain.ledger.facts, chain.masters.get(masterId)?.facts];
    if (facts === null || master === undefined) throw new Error('no master');
    for (let at = chain.events.length; at < events; at += 1)
      chain.run(append({ payload: canonicalJson({ ...injectedFields(facts, master), at }) }));
    const claim = await stores.ledgers.claim(ledgerId);
    const entries = chainEntries(chain.events);
    for (let at = 0; at < entries.length; at += 100) await stores.ledgers.append(claim, entries.slice(at, at + 100));
    for (const log of [ledgerLog, masterLog]) await signedBy(newNode(), log);
  }, 120_000);
  afterAll(() => stores[Symbol.asyncDispose]());

  const values = () => treeValues(stores.session);

  /** A node that has read nothing yet. */
  function newNode(): Checkpoints {
    const { ledgers, tiles, signedHeads } = stores;
    const rows = new LogRows(ledgers);
    const meter = { tilesWritten: () => {}, buildingFailed: () => {}, checkpointSigned: () => {} };
    return new Checkpoints({
      ...{ store: ledgers, heads: signedHeads, rows, meter, clock: systemClock },
      certainHeads: new CertainHeads(ledgers, systemClock),
      trees: new LogTrees({ tiles, rows, meter }),
      signer: { ...vectorSigner, behind: new BehindLogs(false) },
    });
  }

  async function signedBy(node: Checkpoints, log: Log) {
    const walk = unboundedWalk();
    const size = await node.newestSize(log, walk);
    const signed = await node.checkpoint(log, size, walk);
    return verifyCheckpoint(signed?.checkpoint ?? '', origins[log.kind], [vectorKey]);
  }

  /** A new node signs the checkpoint of the ledger that was signed before. */
  async function expectSigned(before: Checkpoint): Promise<void> {
    expect(await signedBy(newNode(), ledgerLog)).toEqual(before);
  }

  /** A new node proves that an older state is the beginning of what was signed before. */
  async function expectProven(before: Checkpoint): Promise<void> {
    const [node, walk] = [newNode(), unboundedWalk()];
    const hashes = await node.consistency(ledgerLog, 100, before.size, walk);
    const signed = await node.checkpoint(ledgerLog, 100, walk);
    const old = verifyCheckpoint(signed?.checkpoint ?? '', origins.ledger, [vectorKey]);
    const [oldOf, newOf] = [
      { oldSize: old.size, oldRoot: old.root },
      { newSize: before.size, newRoot: before.root },
    ];
    expect([old.size, isConsistent({ ...oldOf, ...newOf, hashes })]).toEqual([100, true]);
  }

  async function verify(...options: string[]): Promise<{ readonly code: number } & Report> {
    const { code, out, err } = await runCli(environmentOf(settings), [
      ...['cluster', 'verify', '--all', '--json'],
      ...options,
    ]);
    expect(err).toBe('');
    return { code, ...(JSON.parse(out) as Report) };
  }

  test('finds nothing wrong in what nodes have written', async () => {
    // A row of `tile` for each log; of the master the tail too; a hash above them for each.
    expect(await verify()).toMatchObject({ findings: [], signed_heads: 2, tree_values: 4 + events - 2 - 256 });
  });

  const places: readonly HashPlace[] = [
    { owner: origins.ledger, level: 0, position: 0 },
    { owner: origins.ledger, level: 1, position: 0 },
  ];
  const storedHashes = () => Promise.all(places.map((place) => values().storedHash(place)));

  test.each([
    [
      'the value of another position',
      async (place: HashPlace, right: Buffer) => formatHashes({ ...place, position: 256 }, right.subarray(16)),
    ],
    ['that of another owner', (place: HashPlace) => values().storedHash({ ...place, owner: origins.master })],
    ['random bytes', async (_place: HashPlace, right: Buffer) => randomBytes(right.length)],
  ])('%s, put by CQL as a tile and as a hash, is not used, is found, and is mended for good', async (_what, make) => {
    const before = await signedBy(newNode(), ledgerLog);
    const right = await storedHashes();
    const plant = async () => {
      for (const [at, place] of places.entries())
        await values().plantHash(place, await make(place, right[at] ?? Buffer.alloc(0)));
    };
    // A node that meets the foreign values signs and proves as before, and puts the right values in their place.
    for (const use of [expectSigned, expectProven]) {
      await plant();
      expect(await storedHashes()).not.toEqual(right);
      await use(before);
      expect(await storedHashes()).toEqual(right);
    }
    await plant();
    const found = await verify();
    expect(found.code).toBe(1);
    expect(found.findings.map(({ type, detail }) => [type, detail])).toEqual(
      places.map(({ owner, level }) => [
        'wrong_tile',
        `${owner}, level ${level}, position 0: the value does not fit its place`,
      ]),
    );
    expect(found.findings[0]?.remedy).toContain('--repair');
    expect(await verify('--repair')).toMatchObject({ code: 0, findings: [], tree_values_removed: 2 });
    for (const place of places) expect(await values().storedHash(place)).toEqual(Buffer.alloc(0));
    // The next reader makes them anew, and the deletion does not hide them.
    await expectSigned(before);
    await expectProven(before);
    expect(await storedHashes()).toEqual(right);
  });

  test('what was mended stands after a compaction', { timeout: 120_000 }, async () => {
    const right = await storedHashes();
    // Values, deletions and new values get into files of their own. Merged, nothing of the deletions is kept.
    const options =
      "gc_grace_seconds = 0 AND memtable_flush_period_in_ms = 100 AND compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 2}";
    for (const table of treeTables) await execute(settings, `ALTER TABLE ${table} WITH ${options}`);
    for (const place of places) await values().plantHash(place, randomBytes(48));
    await sleep(systemClock, writtenOutMs);
    expect(await verify('--repair')).toMatchObject({ code: 0, tree_values_removed: 2 });
    await sleep(systemClock, writtenOutMs);
    // On a busy machine the new values may be compacted before the last call ends.
    const removedAt = Date.now();
    await signedBy(newNode(), ledgerLog);
    await newNode().checkpoint(ledgerLog, 100, unboundedWalk());
    await expect.poll(() => compactedSince(removedAt), { timeout: 60_000 }).toEqual(treeTables);
    expect(await storedHashes()).toEqual(right);
    expect(await verify()).toMatchObject({ code: 0, findings: [] });
  });

  /** Which tables of the trees were compacted since. */
  async function compactedSince(ms: number): Promise<string[]> {
    const cql =
      'SELECT columnfamily_name, compacted_at FROM system.compaction_history WHERE keyspace_name = ? ALLOW FILTERING';
    const rows = await execute(settings, cql, [settings.keyspace]);
    const found = rows
      .filter(({ compacted_at }) => Number(compacted_at) >= ms)
      .map((row) => String(row.columnfamily_name));
    return treeTables.filter((table) => found.includes(table));
  }

  test('names each log whose signed head has more events than there are, and exits with 1', async () => {
    const other = `${serviceName}/ledgers/${uuid(0x7777)}`;
    await stores.signedHeads.raise(other, 5, randomBytes(32));
    const found = await verify();
    expect(found.code).toBe(1);
    expect(found.findings).toEqual([
      expect.objectContaining({
        type: 'log_behind',
        detail: `${other}: 5 events of it were signed, and the store has fewer`,
        remedy: expect.stringContaining('new-origin'),
      }),
    ]);
  });

  test('names a tile at a place beyond all numbers, and signed heads that no node can have written', async () => {
    const [block, n] = ['72057594037927936', '4611686018427387904'];
    const insert = 'INSERT INTO tile (owner, block, n, value) VALUES (?, ?, ?, ?)';
    await execute(settings, insert, [origins.ledger, block, n, randomBytes(16 + 256 * 32)]);
    const empty = `${serviceName}/ledgers/${uuid(0x7778)}`;
    await values().plantHead(empty, formatSignedHead(empty, 0, sha256Buffer('')));
    await values().plantHead(origins.ledger, await values().storedHead(origins.ledger));
    const { code, findings } = await verify();
    expect(code).toBe(1);
    const found = findings.map(({ type, table, key }) => [type, table, key]);
    expect(found).toContainEqual(['wrong_tile', 'tile', `owner=${origins.ledger}, block=${block}, n=${n}`]);
    expect(found).toContainEqual(['damaged_row', 'signed_head', `origin=${empty}`]);
    expect(found).toContainEqual(['wrong_writetime', 'signed_head', `origin=${origins.ledger}`]);
    expect(found).toHaveLength(4);
  });

  test('refuses --repair for one ledger', async () => {
    const { code, err } = await runCli(environmentOf(settings), ['cluster', 'verify', ledgerId, '--repair']);
    expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining('--all') });
  });
});
