import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { confirmClusterAuthority, rotateClusterAuthority } from '../../cluster/cli/rotate-authority.ts';
import type { Member, MemberBoard } from '../../cluster/placement/members.ts';
import { names } from '../../src/domain/event/projection.ts';
import { publicKeyOf } from '../../src/service/authority/authority.ts';
import { type AuthorityKeyRecord, signStart } from '../../src/service/authority/key-list.ts';
import { environmentOf, suiteSettings, withClient } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { isNightly } from '../support/nightly.ts';
import { newKeyPair } from '../support/parties.ts';
import { suiteDir } from '../support/running-node.ts';
import { runCli } from '../support/scrub-cli.ts';
import { damages } from './damage/damages.ts';
import { keyspaceOfScenes } from './damage/keyspace.ts';
import { type Scene, storedScene } from './damage/scene.ts';
import { trustAnchor } from './rig/cluster-under-test.ts';

/**
 * Damages that are looked for in their ledger alone: in the ordinary run one for each list of findings, because `--all`
 * checks each ledger by the same rules.
 */
const inOneLedger = damages.filter(
  ({ found, byAll }, at) =>
    isNightly || damages.findIndex((one) => `${one.found} ${one.byAll}` === `${found} ${byAll}`) === at,
);

await describeOnCassandra('cluster verify', (address) => {
  const settings = suiteSettings(address);
  const env = environmentOf(settings);
  const dataDir = suiteDir();
  const scenes = new Map<string, Scene>();
  const verify = async (...args: string[]) => {
    const { code, out, err } = await runCli(env, ['cluster', 'verify', '--json', ...args]);
    expect(err).toBe('');
    const { findings, ...rest } = JSON.parse(out) as {
      findings: { ledger_id: string | null; type: string; detail: string }[];
      finding_count: number;
      verdict: string;
    };
    return { code, findings, ...rest };
  };

  beforeAll(async () => {
    const made = await keyspaceOfScenes(settings, dataDir, damages.length);
    for (const [n, { name }] of damages.entries()) {
      const scene = made[n];
      if (scene !== undefined) scenes.set(name, scene);
    }
    expect(await verify('--all')).toMatchObject({ code: 0, verdict: 'good', findings: [] });
    await withClient(settings, async (client) => {
      for (const { name, change } of damages) {
        const scene = scenes.get(name);
        if (scene !== undefined) await change(storedScene(client, scene));
      }
    });
  }, 120_000);

  test.for(inOneLedger)('of one ledger finds $name', async ({ name, found, byAll }) => {
    const ledgerId = scenes.get(name)?.order.ledgerId ?? '';
    const { code, findings } = await verify(ledgerId);
    const expected = byAll === true ? [] : found;
    expect({ code, types: findings.map(({ type }) => type) }).toMatchObject({
      code: expected.length > 0 ? 1 : 0,
      types: expected.length > 0 ? expect.arrayContaining([...expected]) : [],
    });
    for (const { detail } of findings) expect(detail).toMatch(/\w+ \w+/);
  });

  /** What `--all` finds of the damages: two tests look at it. */
  let ofAll: ReturnType<typeof verify> | null = null;
  const verifyAll = () => {
    ofAll ??= verify('--all');
    return ofAll;
  };

  test('of all ledgers finds every damage by its ledger or name', async () => {
    const { code, findings } = await verifyAll();
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
      // Of a deleted log only the projections are left.
      const expected = name === 'the whole log deleted' ? ['projection_extra'] : found;
      return expected.length === 0 ? own.length > 0 : !expected.every((type) => types.has(type));
    });
    expect(missed.map(({ name }) => name)).toEqual([]);
  });

  test('reports a bucket after the end with its number and the end of the ledger', async () => {
    const { findings } = await verifyAll();
    const ledgerId = scenes.get('a bucket after the end, as after a restore of other moments')?.order.ledgerId;
    expect(findings.filter(({ ledger_id }) => ledger_id === ledgerId)).toMatchObject([
      {
        ledger_id: ledgerId,
        seq: 1_024,
        type: 'wrong_head',
        detail: expect.stringMatching(/^bucket 1 has been written to, .* ends in bucket 0 at seq 14: .* restore/),
      },
    ]);
  });

  test.for([
    [['0193a000-0000-7000-8000-000000000001'], 66, /There is no ledger .*: check the id and CASSANDRA_KEYSPACE/],
    [['PO-1'], 64, /A ledger id is a UUID in lower case/],
    [[], 64, /Give either a ledger id or --all/],
    [['0193a000-0000-7000-8000-000000000001', '--all'], 64, /Give either a ledger id or --all/],
  ] as const)('%o ends with a sentence', async ([args, code, sentence]) => {
    expect(await runCli(env, ['cluster', 'verify', ...args])).toEqual({
      code,
      out: '',
      err: expect.stringMatching(sentence),
    });
  });

  test('missing projections of the newest batch exit with 2, and --finish writes them', async () => {
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

  test('the authority is rotated with all nodes stopped, and an unsigned start of a key is found', async () => {
    const file = join(dataDir, 'next.pem');
    writeFileSync(file, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const keys = { ...env, AUTHORITY_KEY_FILE: join(dataDir, 'authority.pem') };
    const boardOf = (members: readonly Member[]): MemberBoard => ({
      announce: async () => null,
      withdraw: async () => {},
      order: async () => false,
      list: async () => members,
    });
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
      expect(await verify(order?.ledgerId ?? '')).toMatchObject({
        code: 1,
        verdict: 'damaged',
        finding_count: 1,
        findings: [{ type: 'invalid_authority_key' }],
      });
      const { keys, listSig } = JSON.parse(stored) as { keys: AuthorityKeyRecord[]; listSig: string };
      const another = generateKeyPairSync('ed25519').privateKey;
      const [first, ...later] = keys;
      if (first === undefined) throw new Error('no key');
      const before = { ...first, kid: 'svc:authority#key-9', publicKey: publicKeyOf(another) };
      const put = [before, { ...first, startSig: signStart(first, another) }, ...later];
      for (const changed of [{ keys: put, listSig }, { keys }]) {
        await set(JSON.stringify(changed));
        expect((await verify(order?.ledgerId ?? '')).findings).toContainEqual(
          expect.objectContaining({ type: 'invalid_authority_key', table: 'record', key: 'kind=authority, id=keys' }),
        );
      }
      const rotated = { ...env, AUTHORITY_KEY_FILE: file };
      const shown = await confirmClusterAuthority(rotated, undefined);
      expect(shown).toMatch(/^svc:authority#key-1 /);
      expect(await confirmClusterAuthority(rotated, shown.slice(shown.lastIndexOf('\n') + 1))).toContain('is signed');
      expect(await verify(order?.ledgerId ?? '')).toMatchObject({ code: 0, findings: [] });
      await set(stored);

      const whereLog = "WHERE kind = 'log' AND id = 'identity'";
      const log = String((await client.execute(`SELECT value FROM record ${whereLog}`)).first()?.value);
      const setLog = (value: string) =>
        client.execute(`UPDATE record SET value = ? ${whereLog}`, [value], { prepare: true });
      await setLog(log.replace(/"sig":".{4}/, '"sig":"AAAA'));
      expect(await verify(order?.ledgerId ?? '')).toMatchObject({
        code: 1,
        findings: [{ type: 'invalid_log_key', table: 'record', key: 'kind=log, id=identity' }],
      });
      await setLog(log);
    });
  }, 40_000);

  test('seals are checked under a given trust anchor', async () => {
    const file = join(dataDir, 'anchor.json');
    const { order } = scenes.get('nothing') ?? {};
    const anchor = (publicKey: string | null, validFrom?: string) =>
      writeFileSync(file, JSON.stringify(trustAnchor(publicKey, validFrom)));
    const stored = await withClient(settings, async (client) => {
      const found = await client.execute("SELECT value FROM record WHERE kind = 'authority' AND id = 'keys'");
      return JSON.parse(String(found.first()?.value)) as { keys: AuthorityKeyRecord[] };
    });
    const [first] = stored.keys;
    if (first === undefined) throw new Error('no key');
    anchor(first.publicKey, first.validFrom);
    expect(await verify(order?.ledgerId ?? '', '--authority', file)).toMatchObject({ code: 0 });
    anchor(first.publicKey);
    expect(await verify(order?.ledgerId ?? '', '--authority', file)).toMatchObject({
      code: 1,
      findings: [{ type: 'invalid_authority_key' }],
    });
    anchor(newKeyPair().publicKey);
    const { code, findings } = await verify(order?.ledgerId ?? '', '--authority', file);
    expect({ code, types: new Set(findings.map(({ type }) => type)) }).toEqual({
      code: 1,
      types: new Set(['invalid_authority_key', 'invalid_authority_sig']),
    });
    anchor(null);
    expect(await runCli(env, ['cluster', 'verify', '--all', '--authority', file])).toMatchObject({
      code: 66,
      err: expect.stringContaining('publishes no keys'),
    });
    writeFileSync(file, 'no JSON');
    expect(await runCli(env, ['cluster', 'verify', '--all', '--authority', file])).toMatchObject({
      code: 66,
      err: expect.stringContaining('holds no trust anchor document'),
    });
  });

  test('an unreachable store exits with 69 and a wrong variable with 64', async () => {
    expect(await runCli({ ...env, CASSANDRA_KEYSPACE: 'Not-A-Name' }, ['cluster', 'verify', '--all'])).toMatchObject({
      code: 64,
      err: expect.stringContaining('Set CASSANDRA_KEYSPACE'),
    });
    const wrong = { ...env, CASSANDRA_KEYSPACE: 'not_there' };
    expect(await runCli(wrong, ['cluster', 'verify', '--all'])).toMatchObject({
      code: 69,
      err: expect.stringContaining('schema apply'),
    });
  });
});
