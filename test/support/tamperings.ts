import { expect } from 'vitest';
import { append, type Master, newMaster, newOrder, type Order } from './parties.ts';
import { done, type Fields, rest } from './parties-rest.ts';

/** What somebody with the disk in his hands did, and what the next reads must say of it. */
interface Tampering {
  readonly name: string;
  /** Rows by seq: 0 GENESIS, 1 opening, 2 and 3 the masters, then notes of master one at 4, 6, 8, … */
  readonly change: (disk: Disk, master: Master) => Promise<unknown>;
  /** Issue types that the whole ledger's list shows, with `verify=signatures`. */
  readonly ledger: readonly string[];
  readonly master: readonly string[];
}

/** Where a ledger lies, behind the service's back. */
export interface Disk {
  row(seq: number): Promise<string>;
  put(seq: number, row: string): Promise<unknown>;
  remove(seq: number): Promise<unknown>;
  /** From the index of a master. */
  removeFromMaster(masterId: string, seq: number): Promise<unknown>;
  /** To the index of a master. */
  addToMaster(masterId: string, seq: number): Promise<unknown>;
}

/** A row's lines: format, content, payload, signed payload, seal. */
function line(row: string, at: number, change: (text: string) => string): string {
  return row
    .split('\n')
    .map((text, index) => (index === at ? change(text) : text))
    .join('\n');
}

const [content, payload, seal] = [1, 2, 4];

function changeLine(seq: number, at: number, change: (text: string) => string): Tampering['change'] {
  return async (disk) => {
    const row = await disk.row(seq);
    const changed = line(row, at, change);
    expect(changed).not.toBe(row);
    return disk.put(seq, changed);
  };
}

const tamperings: readonly Tampering[] = [
  {
    name: 'a payload changed',
    change: changeLine(6, payload, (text) => text.replace('"n":2', '"n":7')),
    ledger: ['hash_mismatch', 'invalid_actor_sig'],
    master: ['hash_mismatch', 'invalid_actor_sig'],
  },
  {
    name: 'a payload that is no JSON any more',
    change: changeLine(6, payload, (text) => text.slice(1)),
    ledger: ['hash_mismatch'],
    master: ['hash_mismatch'],
  },
  {
    name: 'a time changed',
    change: changeLine(6, content, (text) => text.replace(/"created_at":"\d{4}/, '"created_at":"2020')),
    ledger: ['hash_mismatch'],
    master: ['hash_mismatch'],
  },
  {
    name: 'an actor changed',
    change: changeLine(6, content, (text) => text.replace(/"actor_id":"\w{4}/, '"actor_id":"0000')),
    ledger: ['hash_mismatch', 'invalid_actor_sig'],
    master: ['hash_mismatch', 'invalid_actor_sig'],
  },
  {
    name: 'a hash changed',
    change: changeLine(6, seal, (text) => text.replace(/"hash":"\w{8}/, '"hash":"00000000')),
    ledger: ['hash_mismatch', 'broken_link'],
    master: ['hash_mismatch'],
  },
  {
    name: 'the previous hash changed',
    change: changeLine(6, seal, (text) => text.replace(/"prev_hash":"\w{8}/, '"prev_hash":"00000000')),
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
  { name: 'the genesis removed', change: (disk) => disk.remove(0), ledger: ['missing_event'], master: [] },
  {
    name: 'two events swapped',
    change: async (disk) => {
      const [six, eight] = [await disk.row(6), await disk.row(8)];
      await disk.put(6, eight);
      await disk.put(8, six);
    },
    ledger: ['hash_mismatch'],
    master: ['hash_mismatch'],
  },
  {
    name: 'an event overwritten with its predecessor',
    change: async (disk) => disk.put(6, await disk.row(5)),
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
    change: async (disk) =>
      disk.put(
        14,
        line(await disk.row(13), content, (text) => text.replace('"seq":13', '"seq":14')),
      ),
    ledger: [],
    master: [],
  },
  {
    name: 'a seal of the authority changed',
    change: changeLine(1, seal, (text) => text.replace(/"authority_sig":"[^"]{4}/, '"authority_sig":"AAAA')),
    ledger: ['invalid_authority_sig'],
    master: [],
  },
  {
    name: 'a seal of the authority taken off',
    change: changeLine(1, seal, (text) => text.replace(/"authority_sig":"[^"]*"/, '"authority_sig":null')),
    ledger: ['invalid_authority_sig'],
    master: [],
  },
  {
    name: 'an event taken out of its master’s index',
    change: (disk, master) => disk.removeFromMaster(master.uuid, 6),
    ledger: [],
    master: ['missing_event'],
  },
  {
    name: 'an event of the ledger put into a master’s index',
    change: (disk, master) => disk.addToMaster(master.uuid, 1),
    ledger: [],
    master: ['broken_link'],
  },
  {
    name: 'the creation of another master put into a master’s index',
    change: (disk, master) => disk.addToMaster(master.uuid, 3),
    ledger: [],
    master: ['broken_link'],
  },
  {
    name: 'an event of another master put into a master’s index',
    change: (disk, master) => disk.addToMaster(master.uuid, 9),
    ledger: [],
    master: ['broken_link'],
  },
];

/** A ledger for a tampering. */
export interface TamperingCase {
  readonly tampering: Tampering;
  readonly order: Order;
  readonly master: Master;
  readonly other: Master;
}

/** `patiently` runs what makes one of them, and may run it again: all of it is made anew then. */
export async function makeTamperingCases(
  base: string,
  patiently: <T>(work: () => Promise<T>) => Promise<T> = (work) => work(),
): Promise<TamperingCase[]> {
  const cases: TamperingCase[] = [];
  for (const tampering of tamperings) cases.push(await patiently(() => makeCase(base, tampering)));
  return cases;
}

async function makeCase(base: string, tampering: Tampering): Promise<TamperingCase> {
  const order = await newOrder(base);
  const [master, other] = [await newMaster(order), await newMaster(order)];
  for (let n = 0; n < 10; n += 1) {
    const { status, raw } = await append(n % 2 === 0 ? master : other, order.buyer, 'NOTED', { n });
    if (status !== 200) throw new Error(`append answered ${status} ${raw}`);
  }
  return { tampering, order, master, other };
}

/** Those of which reads say something else than they must, with what they say. Reads go on beside them. */
export async function wronglyRead(base: string, cases: readonly TamperingCase[]): Promise<unknown[]> {
  const wrong: unknown[] = [];
  for (const { tampering, order: made, master } of cases) {
    const order = { ...made, base };
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
    for (const query of ['', '?from_seq=9', '?order=desc&limit=2', '?event_type=TRACELEDGER_MASTER_CREATED']) {
      const page = await done(base, 'GET', masterPath + query, order.buyer);
      const foreign = page.rows('events').filter(({ master_id }) => master_id !== master.uuid);
      if (foreign.length > 0) wrong.push({ name: tampering.name, query, foreign });
    }
    // Pages that do not cover it stay clean, and the ledger is read on.
    expect((await rest(base, 'GET', `${ledgerPath}?from_seq=10&limit=2`, order.buyer)).status).toBe(200);
    const byTime = `${ledgerPath}?from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z`;
    expect((await rest(base, 'GET', byTime, order.buyer)).status).toBe(200);
  }
  return wrong;
}

async function issues(path: string, order: Order): Promise<string[]> {
  const page = await done(order.base, 'GET', path, order.buyer);
  const integrity = page.body.integrity as { verified: boolean; issues: Fields[] };
  expect(integrity.verified).toBe(integrity.issues.length === 0);
  for (const issue of integrity.issues) {
    expect(Object.keys(issue)).toEqual(['event_id', 'type', 'detail']);
    expect(issue.detail).toMatch(/\w+ \w+/);
  }
  return integrity.issues.map((issue) => String(issue.type));
}
