import { generateKeyPairSync } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type cassandra from 'cassandra-driver';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rotateClusterAuthority } from '../../cluster/cli/rotate-authority.ts';
import type { Member, MemberBoard } from '../../cluster/placement/members.ts';
import { names } from '../../src/domain/projection.ts';
import type { CassandraSettings } from '../../src/store/cassandra/settings.ts';
import { dropKeyspace, makeKeyspace, newKeyspace, withClient } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import {
  append,
  type Master,
  newKeyPair,
  newMaster,
  newOrder,
  newParty,
  type Order,
  type Party,
  signedBy,
} from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { runNode, temporaryDir } from '../support/running-node.ts';
import { runCli } from '../support/scrub-cli.ts';

/** A ledger of its own for each damage: 0 genesis, 1 opening, 2 master, 3 a second master, 4 … 13 notes of the first, 14 a grant. */
interface Scene {
  readonly order: Order;
  readonly master: Master;
  readonly other: Master;
}

interface Stand {
  readonly scene: Scene;
  run(cql: string, params: readonly unknown[]): Promise<cassandra.types.ResultSet>;
  row(seq: number): Promise<string>;
  setRow(seq: number, row: string): Promise<unknown>;
}

interface Damage {
  readonly name: string;
  readonly change: (stand: Stand) => Promise<unknown>;
  /** Types that are found, whoever looks. */
  readonly found: readonly string[];
  /** Found by --all alone: nothing in the ledger names it. */
  readonly byAll?: boolean;
}

const at = (row: string, line: number, change: (text: string) => string) =>
  row
    .split('\n')
    .map((text, index) => (index === line ? change(text) : text))
    .join('\n');
const [content, payload, seal] = [1, 2, 4];
const ids = ({ scene }: Stand) => ({
  ledger: scene.order.ledgerId,
  master: scene.master.uuid,
  other: scene.other.uuid,
});

const setRow = (seq: number, line: number, change: (text: string) => string) => async (stand: Stand) => {
  const row = await stand.row(seq);
  const changed = at(row, line, change);
  expect(changed).not.toBe(row);
  return stand.setRow(seq, changed);
};
const dropRow = (seq: number) => (stand: Stand) =>
  stand.run("DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = '' AND seq = ?", [
    ids(stand).ledger,
    seq,
  ]);
const setStatic = (column: string, value: unknown) => (stand: Stand) =>
  stand.run(`UPDATE ledger_event SET ${column} = ? WHERE ledger_id = ? AND bucket = 0`, [value, ids(stand).ledger]);

const damages: readonly Damage[] = [
  { name: 'nothing', change: async () => {}, found: [] },
  {
    name: 'a payload changed',
    change: setRow(6, payload, (text) => text.replace('"n":2', '"n":7')),
    found: ['hash_mismatch'],
  },
  {
    name: 'a time changed',
    change: setRow(6, content, (text) => text.replace(/"created_at":"\d{4}/, '"created_at":"2020')),
    found: ['hash_mismatch'],
  },
  {
    name: 'a hash changed',
    change: setRow(6, seal, (text) => text.replace(/"hash":"\w{8}/, '"hash":"00000000')),
    found: ['hash_mismatch', 'broken_link'],
  },
  {
    name: 'a seal changed',
    change: setRow(1, seal, (text) => text.replace(/"authority_sig":".{4}/, '"authority_sig":"AAAA')),
    found: ['invalid_authority_sig'],
  },
  {
    name: 'a row that is no event',
    change: (stand) => stand.setRow(6, 'svc1\nnothing\nof\nthe\nkind'),
    found: ['unreadable_row'],
  },
  {
    name: 'a row of another seq',
    change: async (stand) => stand.setRow(6, await stand.row(8)),
    found: ['unreadable_row'],
  },
  { name: 'a row deleted', change: dropRow(6), found: ['missing_event'] },
  { name: 'the genesis deleted', change: dropRow(0), found: ['missing_event'] },
  { name: 'the newest row deleted', change: dropRow(14), found: ['wrong_head'] },
  { name: 'the head set back', change: setStatic('head_seq', 12), found: ['wrong_head'] },
  { name: 'the head set forward', change: setStatic('head_seq', 20), found: ['wrong_head'] },
  { name: 'the head’s hash changed', change: setStatic('head_hash', '1'.repeat(64)), found: ['wrong_head'] },
  {
    name: 'the whole log deleted',
    change: (stand) => stand.run('DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0', [ids(stand).ledger]),
    found: ['wrong_head'],
  },
  {
    name: 'a master taken out of the list',
    change: (stand) => stand.run('DELETE FROM line WHERE list = ?', [names.mastersOf(ids(stand).ledger)]),
    found: ['projection_missing'],
  },
  {
    name: 'a line of another master',
    change: (stand) =>
      stand.run('UPDATE line SET value = ? WHERE list = ? AND line_order = ?', [
        '{"masterId":"x"}',
        names.mastersOf(ids(stand).ledger),
        '2'.padStart(16, '0'),
      ]),
    found: ['projection_wrong'],
  },
  {
    name: 'a line too many',
    change: (stand) =>
      stand.run('INSERT INTO line (list, line_order, value) VALUES (?, ?, ?)', [
        names.mastersOf(ids(stand).ledger),
        '5'.padStart(16, '0'),
        '{"masterId":"x"}',
      ]),
    found: ['projection_extra'],
  },
  {
    name: 'a ledger in a stranger’s list',
    change: (stand) =>
      stand.run('INSERT INTO line (list, line_order, value) VALUES (?, ?, ?)', [
        names.ledgersOf('0193a000-0000-7000-8000-000000000001'),
        `2026|${ids(stand).ledger}`,
        JSON.stringify({ ledgerId: ids(stand).ledger, role: 'buyer' }),
      ]),
    found: ['projection_extra'],
    byAll: true,
  },
  {
    name: 'a master without its facts',
    change: (stand) => stand.run('DELETE FROM cell WHERE key = ?', [names.master(ids(stand).master)]),
    found: ['projection_missing'],
  },
  {
    name: 'another value of a master',
    change: (stand) =>
      stand.run('UPDATE cell SET value = ? WHERE key = ?', ['{"masterId":"x"}', names.master(ids(stand).master)]),
    found: ['projection_wrong'],
  },
  {
    name: 'a closing that never was',
    change: (stand) =>
      stand.run('INSERT INTO cell (key, version, value) VALUES (?, ?, ?)', [
        names.ledgerClosed(ids(stand).ledger),
        9,
        '"2026-11-21T00:00:00.000Z"',
      ]),
    found: ['projection_extra'],
  },
  {
    name: 'a grant that never was',
    change: (stand) =>
      stand.run('INSERT INTO cell (key, version, value) VALUES (?, ?, ?)', [
        names.grant('ledger', ids(stand).ledger, '0193a000-0000-7000-8000-000000000001'),
        9,
        '{}',
      ]),
    found: ['projection_extra'],
    byAll: true,
  },
  {
    name: 'events taken out of their master',
    change: (stand) =>
      stand.run('DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = ?', [
        ids(stand).ledger,
        names.masterEvents(ids(stand).master),
      ]),
    found: ['projection_missing'],
  },
  {
    name: 'a master that readers find no events of',
    change: (stand) =>
      stand.run('DELETE FROM scope_bucket WHERE ledger_id = ? AND scope = ?', [
        ids(stand).ledger,
        names.masterEvents(ids(stand).master),
      ]),
    found: ['projection_missing'],
  },
  {
    name: 'an event put under a sibling',
    change: (stand) =>
      stand.run('INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, 0, ?, 6, ?)', [
        ids(stand).ledger,
        names.masterEvents(ids(stand).other),
        '6',
      ]),
    found: ['projection_extra'],
  },
  {
    name: 'a command’s mark deleted',
    change: async (stand) => {
      const marks = await stand.run('SELECT slot, id FROM command WHERE ledger_id = ? ALLOW FILTERING', [
        ids(stand).ledger,
      ]);
      expect(marks.rowLength).toBe(1);
      const { slot, id } = marks.first() ?? {};
      return stand.run('DELETE FROM command WHERE ledger_id = ? AND slot = ? AND id = ?', [
        ids(stand).ledger,
        slot,
        id,
      ]);
    },
    found: ['projection_missing'],
  },
  {
    name: 'a command’s mark too many',
    change: (stand) =>
      stand.run('INSERT INTO command (ledger_id, slot, id, seq, fingerprint) VALUES (?, -1, ?, 6, ?)', [
        ids(stand).ledger,
        'a'.repeat(64),
        'b'.repeat(64),
      ]),
    found: ['projection_extra'],
  },
];

async function makeScene(base: string): Promise<Scene> {
  const order = await newOrder(base);
  const { buyer, supplier } = order;
  const [master, other] = [await newMaster(order), await newMaster(order, supplier, 'PO-2')];
  for (let n = 0; n < 10; n += 1) {
    const options = n === 0 ? { headers: { 'idempotency-key': 'note-once' } } : {};
    expect((await append(master, buyer, 'NOTED', { n }, options)).status).toBe(200);
  }
  return { order, master, other };
}

async function grant(base: string, { buyer, ledgerId }: Order, delegate: Party): Promise<void> {
  const body = { ledger_id: ledgerId, delegate_actor_id: delegate.actorId, role: 'AUDITOR' };
  await done(base, 'POST', '/v1/delegation/ledger', {
    headers: signedBy(buyer, 'LEDGER_DELEGATION_GRANTED', ledgerId, { ...body, permissions: {} }),
    body,
  });
}

function stand(client: cassandra.Client, scene: Scene): Stand {
  const run = (cql: string, params: readonly unknown[]) => client.execute(cql, [...params], { prepare: true });
  const key = [scene.order.ledgerId, 0];
  return {
    scene,
    run,
    row: async (seq) => {
      const rows = await run(
        "SELECT row FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' AND seq = ?",
        [...key, seq],
      );
      return String(rows.first()?.row);
    },
    setRow: (seq, row) =>
      run("INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, ?, '', ?, ?)", [...key, seq, row]),
  };
}

await describeOnCassandra('cluster verify', (address) => {
  const settings: CassandraSettings = newKeyspace(address);
  const env = {
    CASSANDRA_CONTACT_POINTS: settings.contactPoints.join(','),
    CASSANDRA_DATA_CENTER: settings.localDataCenter,
    CASSANDRA_KEYSPACE: settings.keyspace,
    CASSANDRA_ALLOW: [...settings.allow].join(','),
  };
  const dataDir = temporaryDir();
  const scenes = new Map<string, Scene>();
  const verify = async (...args: string[]) => {
    const { code, out, err } = await runCli(env, ['cluster', 'verify', '--json', ...args]);
    expect(err).toBe('');
    const { findings, ...rest } = JSON.parse(out) as {
      findings: { ledger_id: string | null; type: string; detail: string }[];
      verdict: string;
    };
    return { code, findings, ...rest };
  };

  beforeAll(async () => {
    const copied = () => runCli({ ...env, DATA_DIR: dataDir }, ['copy', '--from', 'lmdb', '--to', 'cassandra']);
    await makeKeyspace(settings);
    {
      await using node = await runNode({ dataDir });
      for (const { name } of damages) scenes.set(name, await makeScene(node.base));
    }
    expect(await copied()).toMatchObject({ code: 0, err: '' });
    // The laptop goes on: a ledger's newest batch, which may lack projections for good reason, is the grant alone.
    {
      await using node = await runNode({ dataDir });
      const delegate = await newParty(node.base);
      for (const { order } of scenes.values()) await grant(node.base, order, delegate);
    }
    expect(await copied()).toMatchObject({ code: 0, err: '' });
    expect(await verify('--all')).toMatchObject({ code: 0, verdict: 'good', findings: [] });
    await withClient(settings, async (client) => {
      for (const { name, change } of damages) {
        const scene = scenes.get(name);
        if (scene !== undefined) await change(stand(client, scene));
      }
    });
  }, 120_000);
  afterAll(async () => {
    rmSync(dataDir, { recursive: true, force: true });
    await dropKeyspace(settings);
  });

  test.for(damages)('of one ledger finds: $name', async ({ name, found, byAll }) => {
    const ledgerId = scenes.get(name)?.order.ledgerId ?? '';
    const { code, findings } = await verify(ledgerId);
    const expected = byAll === true ? [] : found;
    expect({ code, types: findings.map(({ type }) => type) }).toMatchObject({
      code: expected.length > 0 ? 1 : 0,
      types: expected.length > 0 ? expect.arrayContaining([...expected]) : [],
    });
    for (const { detail } of findings) expect(detail).toMatch(/\w+ \w+/);
  });

  test('of all finds every one, in its ledger or by its name', async () => {
    const { code, findings } = await verify('--all');
    expect(code).toBe(1);
    const missed = damages.filter(({ name, found }) => {
      const scene = scenes.get(name);
      if (scene === undefined) return true;
      const own = findings.filter(
        ({ ledger_id, detail }) =>
          ledger_id === scene.order.ledgerId ||
          (ledger_id === null && (detail.includes(scene.order.ledgerId) || detail.includes(scene.master.uuid))),
      );
      const types = new Set(own.map(({ type }) => type));
      // Of a log that is gone as a whole, what stood beside it is left.
      const expected = name === 'the whole log deleted' ? ['projection_extra'] : found;
      return expected.length === 0 ? own.length > 0 : !expected.every((type) => types.has(type));
    });
    expect(missed.map(({ name }) => name)).toEqual([]);
  });

  test.for([
    [['0193a000-0000-7000-8000-000000000001'], 2, /There is no ledger .*: check the id and CASSANDRA_KEYSPACE/],
    [['PO-1'], 2, /A ledger id is a UUID in lower case/],
    [[], 2, /Give either a ledger id or --all/],
    [['0193a000-0000-7000-8000-000000000001', '--all'], 2, /Give either a ledger id or --all/],
  ] as const)('%o ends with a sentence', async ([args, code, sentence]) => {
    expect(await runCli(env, ['cluster', 'verify', ...args])).toEqual({
      code,
      out: '',
      err: expect.stringMatching(sentence),
    });
  });

  test('projections that the newest batch lacks are 2, and there with --finish', async () => {
    const { order, master } = scenes.get('nothing') ?? {};
    if (order === undefined || master === undefined) throw new Error('no scene');
    await withClient(settings, (client) =>
      client.execute('DELETE FROM line WHERE list = ?', [names.links('ledger', order.ledgerId)], { prepare: true }),
    );
    expect(await verify(order.ledgerId)).toMatchObject({
      code: 2,
      verdict: 'incomplete',
      findings: [],
      projections_outstanding: 1,
    });
    expect(await verify(order.ledgerId, '--finish')).toMatchObject({
      code: 0,
      verdict: 'good',
      projections_outstanding: 0,
    });
  });

  test('the authority is rotated once all nodes are stopped, and a start that nobody signed is found', async () => {
    const file = join(dataDir, 'next.pem');
    writeFileSync(file, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const keys = { ...env, AUTHORITY_KEY_FILE: join(dataDir, 'authority.pem') };
    const boardOf = (members: readonly Member[]): MemberBoard => {
      return { announce: async () => {}, withdraw: async () => {}, order: async () => {}, list: async () => members };
    };
    const serving = { id: 'node-1', address: 'a:1', startedAt: '', shardCount: 4, draining: false, order: null };
    await expect(rotateClusterAuthority(keys, file, boardOf([serving]))).rejects.toThrow(
      'Stop all nodes first (node-1)',
    );
    await expect(rotateClusterAuthority(env, file, boardOf([]))).rejects.toThrow(
      'Set AUTHORITY_KEY_FILE to the key in use',
    );
    const told = await rotateClusterAuthority(keys, file, boardOf([]));
    expect(told).toMatch(
      /^svc:authority#key-2 \(fingerprint [0-9a-f]{64}\) is the authority from .* Start the nodes with/,
    );
    expect(await rotateClusterAuthority(keys, file, boardOf([]))).toBe(told);
    const { order } = scenes.get('nothing') ?? {};
    expect(await verify(order?.ledgerId ?? '')).toMatchObject({ code: 0, findings: [] });
    await withClient(settings, async (client) => {
      const where = "WHERE kind = 'authority' AND id = 'keys'";
      const stored = String((await client.execute(`SELECT value FROM record ${where}`)).first()?.value);
      const forged = stored.replace(/"startSig":".{4}/, '"startSig":"AAAA');
      expect(forged).not.toBe(stored);
      const set = (value: string) => client.execute(`UPDATE record SET value = ? ${where}`, [value], { prepare: true });
      await set(forged);
      const { code, findings } = await verify(order?.ledgerId ?? '');
      expect({ code, types: findings.map(({ type }) => type) }).toEqual({ code: 1, types: ['invalid_authority_key'] });
      await set(stored);
    });
  });

  test('seals are checked under a trust anchor that was kept elsewhere', async () => {
    const file = join(dataDir, 'anchor.json');
    const { order } = scenes.get('nothing') ?? {};
    const key = (publicKey: string) => ({
      kid: 'svc:authority#key-1',
      algorithm: 'Ed25519',
      public_key: publicKey,
      fingerprint: '00',
      valid_from: '2020-01-01T00:00:00.000Z',
      valid_to: null,
    });
    const anchor = (keys: readonly object[]) =>
      writeFileSync(
        file,
        JSON.stringify({
          id: 'svc:authority',
          algorithm: 'Ed25519',
          public_key: null,
          fingerprint: null,
          kid_namespace: 'svc:authority#key-<seq>',
          phase: '2',
          keys,
        }),
      );
    const stored = await withClient(settings, async (client) => {
      const found = await client.execute("SELECT value FROM record WHERE kind = 'authority' AND id = 'keys'");
      return JSON.parse(String(found.first()?.value)) as { keys: { publicKey: string }[] };
    });
    anchor([key(stored.keys[0]?.publicKey ?? '')]);
    expect(await verify(order?.ledgerId ?? '', '--authority', file)).toMatchObject({ code: 0 });
    anchor([key(newKeyPair().publicKey)]);
    const { code, findings } = await verify(order?.ledgerId ?? '', '--authority', file);
    expect({ code, types: new Set(findings.map(({ type }) => type)) }).toEqual({
      code: 1,
      types: new Set(['invalid_authority_sig']),
    });
    anchor([]);
    expect(await runCli(env, ['cluster', 'verify', '--all', '--authority', file])).toMatchObject({
      code: 2,
      err: expect.stringContaining('publishes no keys'),
    });
    writeFileSync(file, 'no JSON');
    expect(await runCli(env, ['cluster', 'verify', '--all', '--authority', file])).toMatchObject({
      code: 2,
      err: expect.stringContaining('holds no trust anchor document'),
    });
  });

  test('what cannot be reached is 2, not good', async () => {
    const wrong = { ...env, CASSANDRA_KEYSPACE: 'not_there' };
    expect(await runCli(wrong, ['cluster', 'verify', '--all'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('schema apply'),
    });
  });
});
