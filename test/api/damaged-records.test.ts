import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiKeyHash } from '../../src/domain/keys/api-key.ts';
import { wrongRecordForm } from '../../src/maintenance/scrub/record-forms.ts';
import { ledgerKey, recordKey, seqKey } from '../../src/store/lmdb/keys.ts';
import { openWholeLmdb } from '../../src/store/lmdb/open-whole.ts';
import { openTables, type TextTable } from '../../src/store/lmdb/tables.ts';
import { UnreadableRecord } from '../../src/store/unreadable-record.ts';
import {
  append,
  type Master,
  newMaster,
  newOrder,
  newParty,
  type Order,
  otherOrder,
  type Party,
} from '../support/parties.ts';
import { rest } from '../support/parties-rest.ts';
import { runHere } from '../support/program-here.ts';
import { type RunningTestNode, runNode, suiteDir, testDir } from '../support/running-node.ts';

const dataDir = suiteDir();

/** What damage makes of the text of a record: a line of its own fields, then its value. */
const damages: readonly (readonly [string, (text: string) => string])[] = [
  ['no JSON', (text) => text.slice(0, -1)],
  ['no text of a record at all', () => '\0\0\0\0'],
  ['a value without a field', (text) => text.replace(',"revokedAt":null', '')],
  ['a field of another type', (text) => text.replace(/"(actorId|owner)":"[^"]*"/, '"$1":7')],
  ['the value of another record', (text) => text.replace(/"hash":"../, '"hash":"zz')],
];
let parties: readonly Party[] = [];
let actor: Party;
/** Its supplier has signed the one event of its master. The record of that supplier is damaged. */
let signed: { readonly order: Order; readonly eventId: string };
const unreadableHead = 'a head that cannot be read';
/** What damage makes of the newest row and the head of a ledger of four events. undefined: the row is gone. */
const logDamages: Readonly<Record<string, (row: string, head: string) => readonly [string | undefined, string]>> = {
  'a newest row that is cut': (row, head) => [row.slice(0, 40), head],
  'a newest row that was changed': (row, head) => [row.replace('NOTE', 'MOTE'), head],
  'an empty newest row': (_, head) => ['', head],
  'a newest row that is gone': (_, head) => [undefined, head],
  [unreadableHead]: (row) => [row, 'no head'],
};
const damagedLedgers = new Map<string, { readonly order: Order; readonly master: Master }>();
/** A node on the damaged data, which stops before the data are scrubbed. */
let node: RunningTestNode;

beforeAll(async () => {
  {
    await using honest = await runNode({ dataDir });
    parties = await Promise.all(damages.map(() => newParty(honest.base)));
    actor = await newParty(honest.base);
    const order = await newOrder(honest.base);
    const appended = await append(await newMaster(order), order.supplier, 'NOTE', {});
    signed = { order, eventId: appended.text('event_id') };
    const first = await newOrder(honest.base, { keyed: false });
    for (const what of Object.keys(logDamages)) {
      const order = await otherOrder(first);
      const master = await newMaster(order);
      expect((await append(master, order.supplier, 'NOTE', {})).status).toBe(200);
      damagedLedgers.set(what, { order, master });
    }
  }
  const tables = openTables(dataDir);
  const change = async (table: TextTable, key: Buffer | null, damage: (text: string) => string) => {
    if (key === null) throw new Error('no key');
    const stored = table.getEntry(key);
    const text = stored?.value ?? '';
    expect(damage(text)).not.toBe(text);
    await table.put(key, damage(text), stored?.version ?? 0);
  };
  for (const [at, [, damage]] of damages.entries())
    await change(tables.records, recordKey('api_key', apiKeyHash(parties[at]?.apiKey ?? '')), damage);
  for (const { actorId } of [actor, signed.order.supplier])
    await change(tables.records, recordKey('actor', actorId), (text) => text.replace('"keys":[', '"keys":{"a":['));
  for (const [what, damage] of Object.entries(logDamages)) {
    const key = ledgerKey(damagedLedgers.get(what)?.order.ledgerId ?? '');
    const head = tables.heads.getEntry(key);
    const rowKey = seqKey(key, 3);
    const row = tables.events.get(rowKey) ?? '';
    const [rowNow, headNow] = damage(row, head?.value ?? '');
    expect([rowNow, headNow]).not.toEqual([row, head?.value]);
    if (rowNow === undefined) await tables.events.remove(rowKey);
    else await tables.events.put(rowKey, rowNow);
    await tables.heads.put(key, headNow, head?.version ?? 0);
  }
  await tables.root.close();
  node = await runNode({ dataDir });
});
afterAll(() => node.stop());

async function counter(name: string): Promise<number> {
  const metrics = await (await fetch(`${node.opsBase}/metrics`)).text();
  const line = metrics.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length) ?? 0);
}

/** How many damaged API keys the node has counted. */
const unreadableKeys = () => counter('svc_unreadable_records_total{kind="api_key"}');

test.each(damages.map(([what], at) => [what, at] as const))(
  'an API key with a record that is %s is answered as internal, logged and counted, never as invalid_api_key',
  async (_what, at) => {
    const party = parties[at];
    const [logged, counted] = [node.lines.length, await unreadableKeys()];
    const answer = await rest(node.base, 'GET', '/v1/ledgers', { headers: party?.bearer ?? {} });
    expect([answer.status, answer.code]).toEqual([500, 'internal']);
    expect(JSON.stringify(answer.body)).toContain('A stored record of kind api_key that this call needs is damaged');
    const lines = node.lines.slice(logged);
    expect(lines.some((line) => line.includes('"level":"error"') && line.includes('is damaged: '))).toBe(true);
    expect(await unreadableKeys()).toBeGreaterThan(counted);
    const unknown = await rest(node.base, 'GET', '/v1/ledgers', {
      headers: { authorization: `Bearer ${party?.apiKey.slice(0, -1)}${party?.apiKey.endsWith('a') ? 'b' : 'a'}` },
    });
    expect([unknown.status, unknown.code]).toEqual([401, 'invalid_api_key']);
  },
);

test('a damaged actor is answered as internal, never as not_found', async () => {
  const resolved = await rest(node.base, 'GET', `/v1/resolve/${actor.svcId}`, {});
  expect([resolved.status, resolved.code]).toEqual([500, 'internal']);
});

test('events of a signer whose record is damaged are read, with the damage in integrity', async () => {
  const { order, eventId } = signed;
  const page = await rest(node.base, 'GET', `/v1/ledgers/${order.ledgerId}/events?verify=signatures`, order.buyer);
  const detail = 'the stored record of the actor that signed is damaged';
  const issues = expect.arrayContaining([{ event_id: eventId, type: 'invalid_actor_sig', detail }]);
  expect(page).toMatchObject({ status: 200, body: { integrity: { verified: false, issues } } });
  expect(page.rows('events').map((event) => event.id)).toContain(eventId);
});

test.each(Object.keys(logDamages))(
  'a ledger with %s: reads name the damage in integrity, and an append is unavailable with its seq, and counted',
  async (what) => {
    const { order, master } = damagedLedgers.get(what) ?? {};
    if (order === undefined || master === undefined) throw new Error('no ledger');
    const page = await rest(node.base, 'GET', `/v1/ledgers/${order.ledgerId}/events`, order.buyer);
    expect(page).toMatchObject({ status: 200, body: { integrity: { verified: false } } });
    const counted = await counter('svc_damaged_ledgers_total');
    const refused = await append({ ...master, base: node.base }, order.supplier, 'NOTE', {});
    expect([refused.status, refused.code]).toEqual([503, 'unavailable']);
    expect(refused.text('error.message')).toContain(
      'Stored events of this ledger are damaged, so nothing was written.',
    );
    expect(refused.body).toMatchObject({ error: { details: { ledger_id: order.ledgerId, seq: 3 } } });
    expect(await counter('svc_damaged_ledgers_total')).toBe(counted + 1);
  },
);

test('scrub names each damage and exits with 1', async () => {
  await node.stop();
  const { code, out } = await runHere(['scrub'], { env: { DATA_DIR: dataDir } });
  expect(code).toBe(1);
  for (const [at] of damages.entries()) expect(out).toContain(apiKeyHash(parties[at]?.apiKey ?? ''));
  expect(out).toContain(`the stored actor record "${actor.actorId}" is damaged: `);
  const { ledgerId } = damagedLedgers.get(unreadableHead)?.order ?? {};
  expect(out).toContain(`the stored head record "${ledgerId}" is damaged: where the ledger ends cannot be read`);
});

test('scrub finds no damage in what the service wrote, and checks the form of every kind of record in it', async () => {
  const honestDir = testDir();
  {
    await using honest = await runNode({ dataDir: honestDir });
    expect(await (await fetch(`${honest.base}/v1/sandbox/run`)).text()).toMatch(/\d+ passed, 0 failed\s*$/);
  }
  const { code, out } = await runHere(['scrub'], { env: { DATA_DIR: honestDir } });
  const readable = /^\d+ records and .* are readable\.\n0 tiles and 2 signed heads agree with the events\.\n$/;
  expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(readable) });
  await using source = await openWholeLmdb(honestDir, Date.now);
  const stored = [...source.whole.records()].map((record) => {
    if (record instanceof UnreadableRecord) throw record;
    return record;
  });
  const unchecked = stored.filter((record) => wrongRecordForm({ ...record, value: '"text"' }) === null);
  expect(unchecked.map(({ kind }) => kind)).toEqual([]);
  expect(stored.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['idempotency', 'node', 'webhook_changes']));
});
