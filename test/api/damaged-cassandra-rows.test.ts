import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CassandraLedgerStore } from '../../src/store/cassandra/log/ledger-store.ts';
import { directSession } from '../simulation/cassandra.ts';
import { SimulatedTables } from '../simulation/tables.ts';
import { MemoryRecordStore } from '../support/memory-store/record-store.ts';
import { append, type Master, newMaster, newOrder, type Order, otherOrder } from '../support/parties.ts';
import { rest } from '../support/parties-rest.ts';
import { type FaultyNode, newNodeKeys, runFaultyNode } from '../support/running-node-faulty.ts';

/** A Cassandra in memory, in place of a real one, below a whole node. */
const tables = new SimulatedTables();
const session = directSession(tables);
const records = new MemoryRecordStore();
const keys = newNodeKeys();
/** One without anything in memory. */
const newNode = () => {
  const ledgers = new CassandraLedgerStore({ session, now: Date.now, random: randomBytes, bucketEvents: 1_024 });
  return runFaultyNode({ ledgers, records, keys });
};

const newestSeq = 3;
const setRow = (ledgerId: string, row: string | null) =>
  tables.write([
    {
      cql: "INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, ?, '', ?, ?)",
      params: [ledgerId, 0, BigInt(newestSeq), row],
    },
  ]);
const setHead = (ledgerId: string, seq: bigint | null, hash: string | null) =>
  tables.write([
    {
      cql: 'UPDATE ledger_event SET head_seq = ?, head_hash = ? WHERE ledger_id = ? AND bucket = ?',
      params: [seq, hash, ledgerId, 0],
    },
  ]);

const goneRow = 'a head whose row is gone';
/** What damage does to the newest row and the head of a ledger of four events. */
const damages: Readonly<Record<string, (ledgerId: string, row: string) => void>> = {
  'a newest row that is cut': (id, row) => setRow(id, row.slice(0, 40)),
  'a newest row that was changed': (id, row) => setRow(id, row.replace('NOTE', 'MOTE')),
  'an empty newest row': (id) => setRow(id, ''),
  'a newest row without its text': (id) => setRow(id, null),
  'a head without its hash': (id) => setHead(id, BigInt(newestSeq), null),
  'a head with another hash': (id) => setHead(id, BigInt(newestSeq), 'no hash'),
  [goneRow]: (id) => setHead(id, BigInt(newestSeq + 1), 'f'.repeat(64)),
};
const damaged = new Map<string, { readonly order: Order; readonly master: Master }>();
let node: FaultyNode;

beforeAll(async () => {
  await using honest = await newNode();
  const first = await newOrder(honest.base, { keyed: false });
  for (const [what, damage] of Object.entries(damages)) {
    const order = await otherOrder(first);
    const master = await newMaster(order);
    expect((await append(master, order.supplier, 'NOTE', {})).status).toBe(200);
    const cql = "SELECT row FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' AND seq = ?";
    const [stored] = await session.read({ cql, params: [order.ledgerId, 0, BigInt(newestSeq)] });
    damage(order.ledgerId, String(stored?.row));
    damaged.set(what, { order, master });
  }
  node = await newNode();
});
afterAll(() => node[Symbol.asyncDispose]());

test.each(Object.keys(damages))(
  'on Cassandra a ledger with %s: reads name the damage in integrity, and an append is unavailable with its seq',
  async (what) => {
    const { order, master } = damaged.get(what) ?? {};
    if (order === undefined || master === undefined) throw new Error('no ledger');
    const page = await rest(node.base, 'GET', `/v1/ledgers/${order.ledgerId}/events`, { headers: order.buyer.bearer });
    expect(page).toMatchObject({ status: 200, body: { integrity: { verified: false } } });
    const seq = what === goneRow ? newestSeq + 1 : newestSeq;
    for (let times = 0; times < 2; times++) {
      const refused = await append({ ...master, base: node.base }, order.supplier, 'NOTE', {});
      expect([refused.status, refused.code]).toEqual([503, 'unavailable']);
      expect(refused.text('error.message')).toContain(
        'Stored events of this ledger are damaged, so nothing was written.',
      );
      expect(refused.body).toMatchObject({ error: { details: { ledger_id: order.ledgerId, seq } } });
    }
    const cql = "SELECT seq FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' AND seq >= ?";
    expect(await session.read({ cql, params: [order.ledgerId, 0, BigInt(newestSeq + 1)] })).toEqual([]);
  },
);
