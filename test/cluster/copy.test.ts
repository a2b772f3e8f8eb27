import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { ledgerKey, seqKey } from '../../src/store/lmdb/keys.ts';
import { openTables } from '../../src/store/lmdb/tables.ts';
import { environmentOf, execute, makeKeyspace, suiteSettings, withClient } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { compileCache } from '../support/compile-cache.ts';
import { newOrganization } from '../support/organizations.ts';
import {
  append,
  type Device,
  eventsOf,
  type Master,
  newDevice,
  newMaster,
  newOrder,
  type Order,
} from '../support/parties.ts';
import { done, type Fields, rest } from '../support/parties-rest.ts';
import type { CliEnd } from '../support/program-here.ts';
import { runNode, suiteDir, testDir } from '../support/running-node.ts';
import { runCli } from '../support/scrub-cli.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';

/** So many that a ledger takes several commits. */
const notesPerMaster = 40;
const idempotency = { 'idempotency-key': 'note-once' };

interface World {
  readonly order: Order;
  readonly masters: readonly Master[];
  readonly device: Device;
  readonly organizationId: string;
  readonly subscriptionId: string;
  /** Of the ledger, as the source has signed it. */
  readonly checkpoint: string;
}

async function makeWorld(base: string): Promise<World> {
  const order = await newOrder(base);
  const { buyer, supplier } = order;
  const masters = [await newMaster(order), await newMaster(order, supplier, 'PO-2')];
  for (let n = 0; n < notesPerMaster; n += 1)
    for (const master of masters) expect((await append(master, buyer, 'NOTED', { n })).status).toBe(200);
  const [master] = masters;
  if (master === undefined) throw new Error('no master');
  const device = await newDevice(base, { owner: supplier });
  await done(base, 'POST', '/v1/entities/root-ledger', { headers: device.headers });
  const { organizationId } = await newOrganization(base, buyer);
  const subscribed = await done(base, 'POST', '/v1/webhooks', supplier, {
    url: 'http://127.0.0.1:1/hook',
    event_types: ['NOTHING'],
  });
  // After the subscription, so that the ledger has a cursor.
  expect((await append(master, buyer, 'NOTED_ONCE', {}, { headers: idempotency })).status).toBe(200);
  await done(base, 'GET', `/v1/traceledger/master/${master.uuid}/checkpoint`, buyer);
  const signed = await done(base, 'GET', `/v1/ledgers/${order.ledgerId}/checkpoint`, buyer);
  return {
    order,
    masters,
    device,
    organizationId,
    subscriptionId: subscribed.text('id'),
    checkpoint: signed.text('checkpoint'),
  };
}

/** Returns the answers of all read methods. */
async function readAll(base: string, { order, masters, device, organizationId }: World): Promise<Fields> {
  const headers = order.buyer.bearer;
  const read = async (path: string, as: Readonly<Record<string, string>> = headers) =>
    (await done(base, 'GET', path, { headers: as })).body;
  const events = await eventsOf(base, order.buyer, order.ledgerId, '&verify=signatures');
  expect(events.length).toBe(2 + masters.length * (1 + notesPerMaster) + 1);
  return {
    events,
    ledgers: await read('/v1/ledgers'),
    ledger: await read(`/v1/ledgers/${order.ledgerId}`),
    masters: await read(`/v1/traceledger/master?ledger_id=${order.ledgerId}`),
    masterEvents: await Promise.all(masters.map(({ uuid }) => read(`/v1/traceledger/master/${uuid}/events`))),
    keys: await read(`/v1/actors/${order.buyer.actorId}/keys`),
    entity: await read(`/v1/entities/${device.actorId}`),
    root: await read(`/v1/entities/root-ledger/${device.actorId}`, device.headers),
    organization: await read(`/v1/organizations/${organizationId}`),
    webhooks: await read('/v1/webhooks', order.supplier.bearer),
    me: await read('/v1/developer/me'),
  };
}

await describeOnCassandra('copy --from lmdb --to cassandra', (address) => {
  const dataDir = suiteDir();
  const settings = suiteSettings(address);
  const env = { DATA_DIR: dataDir, ...environmentOf(settings) };
  const copy = (more: Readonly<Record<string, string>> = {}): Promise<CliEnd> =>
    runCli({ ...env, ...more }, ['copy', '--from', 'lmdb', '--to', 'cassandra']);
  let world: World;
  let before: Fields;
  let history: Fields[];

  beforeAll(async () => {
    await using node = await runNode({ dataDir });
    world = await makeWorld(node.base);
    before = await readAll(node.base, world);
    const audit = await done(node.base, 'GET', '/v1/audit/access?limit=1000', world.order.buyer);
    history = audit.rows('access_events');
    // The longest ledger takes two buckets.
    await makeKeyspace(settings, 64);
    const served = await copy();
    expect(served).toMatchObject({
      code: 1,
      err: expect.stringMatching(/Another process is serving .*: stop it first/),
    });
  });

  test('a restored backup is refused before anything is written', async () => {
    const folder = testDir();
    const restored = join(folder, 'restored');
    expect(await runCli(env, ['backup', restored])).toMatchObject({ code: 0 });
    expect(existsSync(join(restored, 'COPY'))).toBe(true);
    const newName = 'run `ledger-trust log new-origin NAME` first';
    const sameName = '`ledger-trust log keep` if nothing was signed since';
    expect(await copy({ DATA_DIR: restored })).toEqual({
      code: 1,
      out: '',
      err: `ledger-trust: The data was restored from a copy: ${newName}, or ${sameName}.\n`,
    });
    for (const table of ['record', 'ledger_event', 'signed_head'])
      expect([table, await execute(settings, `SELECT * FROM ${table} LIMIT 1`)]).toEqual([table, []]);
  });

  test('no event behind a damage is copied, and everything else is', async () => {
    const key = seqKey(ledgerKey(world.order.ledgerId), 70);
    const tables = openTables(dataDir);
    const row = tables.events.get(key) ?? '';
    await tables.events.put(key, row.replace('"n":', '"n":1'));
    await tables.root.close();
    const { code, out, err } = await copy();
    expect({ code, out }).toMatchObject({ code: 1, out: expect.stringContaining('1 things were not copied') });
    expect(err).toMatch(new RegExp(`Ledger ${world.order.ledgerId} is damaged at seq 70 .*restore it from a backup`));
    const mended = openTables(dataDir);
    await mended.events.put(key, row);
    await mended.root.close();
  });

  test('a second run continues, and a third one changes nothing', async () => {
    const second = await copy();
    expect(second.err).toBe('');
    expect(second.out).toMatch(
      /Copied 88 events in 3 ledgers, \d+ records and the access histories of \d+ actors, 2 signed heads from/,
    );
    expect((await copy()).out).toBe(second.out);
    const verified = await runCli(env, ['cluster', 'verify', '--all']);
    expect(verified).toMatchObject({ code: 0, err: '', out: expect.stringMatching(/^GOOD {2}3 ledgers, 88 events/) });
  });

  test('a progress bar is shown on a terminal', async () => {
    const program = fileURLToPath(new URL('../../cluster/cli.ts', import.meta.url));
    const command = `'${process.execPath}' '${program}' copy --from lmdb --to cassandra`;
    const { PATH = '' } = process.env;
    const { stdout } = await promisify(execFile)('script', ['-qec', command, '/dev/null'], {
      env: { PATH, TERM: 'xterm', ...compileCache, ...env },
    });
    const drawn = [...stdout.matchAll(/(\d+) of (\d+) events and records/g)].map(([, done, all]) => [done, all]);
    const [, all] = drawn[0] ?? [];
    expect([drawn[0], drawn.at(-1)]).toEqual([
      ['0', all],
      [all, all],
    ]);
  });

  test('a target ledger with other events is left as it is', async () => {
    const other = '1'.repeat(64);
    const params = [world.order.ledgerId];
    const read = () =>
      withClient(settings, async (client) => {
        const found = await client.execute(
          'SELECT head_hash FROM ledger_event WHERE ledger_id = ? AND bucket = 1 LIMIT 1',
          params,
          { prepare: true },
        );
        return String(found.first()?.head_hash);
      });
    const set = (hash: string) =>
      withClient(settings, (client) =>
        client.execute('UPDATE ledger_event SET head_hash = ? WHERE ledger_id = ? AND bucket = 1', [hash, ...params], {
          prepare: true,
        }),
      );
    const hash = await read();
    await set(other);
    const { code, err } = await copy();
    expect(code).toBe(1);
    expect(err).toMatch(/stands in the target with another event at seq 84, and is left as it is/);
    expect(await read()).toBe(other);
    await set(hash);
  });

  test('a keyspace with other keys is refused before anything is written', async () => {
    const elsewhere = testDir();
    {
      await using _ = await runNode({ dataDir: elsewhere });
    }
    const { code, err } = await copy({ DATA_DIR: elsewhere });
    expect(code).toBe(1);
    expect(err).toMatch(/belongs to another installation .*copy into a keyspace that no node has served yet/);
  });

  test.for([
    [{ DATA_DIR: '/nowhere/at/all' }, /it is no data directory of this service; check DATA_DIR/],
    [{ CASSANDRA_KEYSPACE: 'not_there' }, /schema apply/],
    [{ CASSANDRA_CONTACT_POINTS: '' }, /Set CASSANDRA_CONTACT_POINTS/],
  ] as const)('%o is one sentence that says what to do', async ([wrong, sentence]) => {
    const { code, err } = await copy(wrong);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(sentence) });
    expect(err.trim().split('\n').length).toBe(1);
  });

  test('every other direction is refused', async () => {
    const { code, err } = await runCli(env, ['copy', '--from', 'cassandra', '--to', 'lmdb']);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('and no other way') });
  });

  test('a node on Cassandra reads everything as before, and continues', async () => {
    const keys = {
      AUTHORITY_KEY_FILE: join(dataDir, 'authority.pem'),
      SECRETS_KEY_FILE: join(dataDir, 'secrets.key'),
      LOG_KEY_FILE: join(dataDir, 'log.pem'),
    };
    await using cluster: ClusterUnderTest = await startCluster({
      nodes: 0,
      cassandra: address,
      env: { ...keys, CASSANDRA_KEYSPACE: settings.keyspace },
    });
    const node = await cluster.grow();
    const base = node.baseUrl;
    expect(await readAll(base, world)).toEqual(before);
    const audit = await done(base, 'GET', '/v1/audit/access?limit=1000', world.order.buyer);
    expect(audit.rows('access_events').slice(-history.length)).toEqual(history);
    const [first] = world.masters;
    if (first === undefined) throw new Error('no master');
    const master = { ...first, base };
    const again = await append(master, world.order.buyer, 'NOTED_ONCE', {}, { headers: idempotency });
    expect({ status: again.status, replayed: again.headers.get('idempotent-replayed') }).toEqual({
      status: 200,
      replayed: 'true',
    });
    const appended = await append(master, world.order.supplier, 'NOTED', { n: 'on Cassandra' });
    expect(appended).toMatchObject({ status: 200, body: expect.objectContaining({ seq: 85 }) });
    const path = `/v1/ledgers/${world.order.ledgerId}/proof/consistency?from=85`;
    const proof = await done(base, 'GET', path, world.order.buyer);
    // What the source has signed.
    expect([proof.body.to, proof.body.checkpoint_from]).toEqual([86, world.checkpoint]);
    // A later copy leaves a ledger that has grown. The cursor moves once the node works for the shard.
    await expect
      .poll(() => copy(), { timeout: 20_000, interval: 500 })
      .toMatchObject({ code: 1, err: expect.stringMatching(/^(The webhook_cursor .* is left as it is: .*\n)+$/) });
    expect(
      (await rest(base, 'GET', `/v1/ledgers/${world.order.ledgerId}/events?limit=1000`, world.order.buyer)).body.count,
    ).toBe(86);
    const verified = await runCli(env, ['cluster', 'verify', world.order.ledgerId]);
    expect(verified).toMatchObject({ code: 0, out: expect.stringMatching(/^GOOD {2}1 ledgers, 86 events/) });
  }, 60_000);
});
