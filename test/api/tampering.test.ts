import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ledgerKey, scopePrefix, seqKey } from '../../src/store/lmdb/keys.ts';
import { openTables, type Tables } from '../../src/store/lmdb/tables.ts';
import { append, type Master, newMaster, newOrder, type Order } from '../support/parties.ts';
import { done, type Fields, rest } from '../support/parties-rest.ts';
import { runNode, temporaryDir } from '../support/running-node.ts';

/** What somebody with the disk in his hands did, and what the next reads must say of it. */
interface Tampering {
  readonly name: string;
  /** `rows` are the ledger's rows by seq: 0 genesis, 1 opening, 2 and 3 the masters' creation, then notes of master one at 4, 6, 8, … */
  readonly change: (disk: Disk) => Promise<void>;
  /** Issue types that the whole ledger's list shows, with `verify=signatures`. */
  readonly ledger: readonly string[];
  readonly master: readonly string[];
  /** Found without `verify=signatures` too. */
  readonly unasked?: boolean;
}

interface Disk {
  row(seq: number): string;
  put(seq: number, row: string): Promise<void>;
  remove(seq: number): Promise<void>;
  readonly master: Master;
  readonly tables: Tables;
}

/** A row's lines: format, content, payload, signed payload, seal. */
function line(row: string, at: number, change: (text: string) => string): string {
  return row
    .split('\n')
    .map((text, index) => (index === at ? change(text) : text))
    .join('\n');
}

const [content, payload, seal] = [1, 2, 4];

const tamperings: readonly Tampering[] = [
  {
    name: 'a payload changed',
    change: (disk) =>
      disk.put(
        6,
        line(disk.row(6), payload, (text) => text.replace('"n":2', '"n":7')),
      ),
    ledger: ['hash_mismatch', 'invalid_actor_sig'],
    master: ['hash_mismatch', 'invalid_actor_sig'],
  },
  {
    name: 'a payload that is no JSON any more',
    change: (disk) =>
      disk.put(
        6,
        line(disk.row(6), payload, (text) => text.slice(1)),
      ),
    ledger: ['hash_mismatch'],
    master: ['hash_mismatch'],
  },
  {
    name: 'a time changed',
    change: (disk) =>
      disk.put(
        6,
        line(disk.row(6), content, (text) => text.replace(/"created_at":"\d{4}/, '"created_at":"2020')),
      ),
    ledger: ['hash_mismatch'],
    master: ['hash_mismatch'],
  },
  {
    name: 'an actor changed',
    change: (disk) =>
      disk.put(
        6,
        line(disk.row(6), content, (text) => text.replace(/"actor_id":"\w{4}/, '"actor_id":"0000')),
      ),
    ledger: ['hash_mismatch', 'invalid_actor_sig'],
    master: ['hash_mismatch', 'invalid_actor_sig'],
  },
  {
    name: 'a hash changed',
    change: (disk) =>
      disk.put(
        6,
        line(disk.row(6), seal, (text) => text.replace(/"hash":"\w{8}/, '"hash":"00000000')),
      ),
    ledger: ['hash_mismatch', 'broken_link'],
    master: ['hash_mismatch'],
  },
  {
    name: 'the previous hash changed',
    change: (disk) =>
      disk.put(
        6,
        line(disk.row(6), seal, (text) => text.replace(/"prev_hash":"\w{8}/, '"prev_hash":"00000000')),
      ),
    ledger: ['hash_mismatch', 'broken_link'],
    master: ['hash_mismatch'],
  },
  {
    name: 'an event removed from the middle',
    change: (disk) => disk.remove(6),
    ledger: ['missing_event'],
    master: ['missing_event'],
  },
  {
    name: 'the newest event removed',
    change: (disk) => disk.remove(13),
    ledger: ['missing_event'],
    master: [],
  },
  {
    name: 'the genesis removed',
    change: (disk) => disk.remove(0),
    ledger: ['missing_event'],
    master: [],
  },
  {
    name: 'two events swapped',
    change: async (disk) => {
      const [six, eight] = [disk.row(6), disk.row(8)];
      await disk.put(6, eight);
      await disk.put(8, six);
    },
    ledger: ['hash_mismatch'],
    master: ['hash_mismatch'],
  },
  {
    name: 'an event overwritten with its predecessor',
    change: (disk) => disk.put(6, disk.row(5)),
    ledger: ['hash_mismatch'],
    master: ['hash_mismatch'],
  },
  {
    name: 'an event overwritten with what is no event',
    change: (disk) => disk.put(6, 'svc1\nnothing\nof\nthe\nkind'),
    ledger: ['hash_mismatch'],
    master: ['hash_mismatch'],
  },
  {
    name: 'an event added behind the head',
    change: (disk) =>
      disk.put(
        14,
        line(disk.row(13), content, (text) => text.replace('"seq":13', '"seq":14')),
      ),
    ledger: [],
    master: [],
  },
  {
    name: 'a seal of the authority changed',
    change: (disk) =>
      disk.put(
        1,
        line(disk.row(1), seal, (text) => text.replace(/"authority_sig":"[^"]{4}/, '"authority_sig":"AAAA')),
      ),
    ledger: ['invalid_authority_sig'],
    master: [],
    unasked: true,
  },
  {
    name: 'a seal of the authority taken off',
    change: (disk) =>
      disk.put(
        1,
        line(disk.row(1), seal, (text) => text.replace(/"authority_sig":"[^"]*"/, '"authority_sig":null')),
      ),
    ledger: ['invalid_authority_sig'],
    master: [],
    unasked: true,
  },
  {
    name: 'an event taken out of its master’s index',
    change: async (disk) => {
      const prefix = scopePrefix(ledgerKey(disk.master.ledgerId), `master:${disk.master.uuid}`);
      expect(await disk.tables.scopes.remove(seqKey(prefix, 6))).toBe(true);
    },
    ledger: [],
    master: ['missing_event'],
  },
];

const dataDir = temporaryDir();
const cases: { tampering: Tampering; order: Order; master: Master }[] = [];
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

beforeAll(async () => {
  {
    await using node = await runNode({ dataDir });
    for (const tampering of tamperings) {
      const order = await newOrder(node.base);
      const [master, other] = [await newMaster(order), await newMaster(order)];
      for (let n = 0; n < 10; n += 1) await append(n % 2 === 0 ? master : other, order.buyer, 'NOTED', { n });
      cases.push({ tampering, order, master });
    }
  }
  const tables = openTables(dataDir);
  for (const { tampering, order, master } of cases) {
    const key = (seq: number) => seqKey(ledgerKey(order.ledgerId), seq);
    await tampering.change({
      row: (seq) => tables.events.get(key(seq)) ?? '',
      put: async (seq, row) => {
        expect(row).not.toBe(tables.events.get(key(seq)));
        await tables.events.put(key(seq), row);
      },
      remove: async (seq) => void expect(await tables.events.remove(key(seq))).toBe(true),
      master,
      tables,
    });
  }
  await tables.root.close();
});

async function issues(path: string, order: Order): Promise<string[]> {
  const page = await done(order.base, 'GET', path, { headers: order.buyer.bearer });
  const integrity = page.body.integrity as { verified: boolean; issues: Fields[] };
  expect(integrity.verified).toBe(integrity.issues.length === 0);
  for (const issue of integrity.issues) {
    expect(Object.keys(issue)).toEqual(['event_id', 'type', 'detail']);
    expect(issue.detail).toMatch(/\w+ \w+/);
  }
  return integrity.issues.map((issue) => String(issue.type));
}

test('each is found by the next reads that cover it, after a restart', async () => {
  await using node = await runNode({ dataDir });
  const wrong: unknown[] = [];
  for (const { tampering, order: made, master } of cases) {
    const order = { ...made, base: node.base };
    const ledgerPath = `/v1/ledgers/${order.ledgerId}/events`;
    const masterPath = `/v1/traceledger/master/${master.uuid}/events`;
    const found = {
      ledger: await issues(`${ledgerPath}?verify=signatures`, order),
      master: await issues(`${masterPath}?verify=signatures`, order),
      backwards: await issues(`${ledgerPath}?order=desc&verify=signatures`, order),
      unasked: await issues(ledgerPath, order),
    };
    const expected = new Set(tampering.ledger);
    const has = (list: string[], all: readonly string[]) => all.every((type) => list.includes(type));
    const good =
      has(found.ledger, tampering.ledger) &&
      has(found.backwards, tampering.ledger) &&
      has(found.master, tampering.master) &&
      (expected.size > 0 || found.ledger.length === 0) &&
      (tampering.master.length > 0 || found.master.length === 0) &&
      (tampering.ledger.every((type) => type === 'invalid_actor_sig') ||
        expected.size === 0 ||
        found.unasked.length > 0);
    if (!good) wrong.push({ name: tampering.name, expected: tampering, found });
    // Pages that do not cover it stay clean, and the ledger is read on.
    expect(
      (await rest(node.base, 'GET', `${ledgerPath}?from_seq=10&limit=2`, { headers: order.buyer.bearer })).status,
    ).toBe(200);
    const byTime = `${ledgerPath}?from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z`;
    expect((await rest(node.base, 'GET', byTime, { headers: order.buyer.bearer })).status).toBe(200);
  }
  expect(wrong).toEqual([]);
});
