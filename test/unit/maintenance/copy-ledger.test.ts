import { describe, expect, test } from 'vitest';
import { contentHash, contentJson, eventHash } from '../../../src/domain/event/content.ts';
import type { LedgerEvent, MasterLink } from '../../../src/domain/event/event.ts';
import { isoTime } from '../../../src/domain/values/time.ts';
import { uuidV7 } from '../../../src/domain/values/uuid.ts';
import { CopyRefused, copyLedger } from '../../../src/maintenance/copy/copy-ledger.ts';
import { checkOwner, copyAccesses, copyRecords } from '../../../src/maintenance/copy/copy-store.ts';
import { openAuthority, rotateAuthority } from '../../../src/service/authority/authority.ts';
import type { AccessEvent } from '../../../src/store/access-log.ts';
import type { Head, LedgerStore } from '../../../src/store/ledger-store.ts';
import type { WholeRecord } from '../../../src/store/whole-store.ts';
import { chainEntries, entriesEndingIn } from '../../support/chain-entries.ts';
import {
  append,
  commandKey,
  createMaster,
  grant,
  ledgerId,
  masterId,
  openLedger,
  siblingId,
  uuid,
} from '../../support/commands.ts';
import { newSigningKey } from '../../support/log-stores.ts';
import { MemoryAccessLog } from '../../support/memory-store/access-log.ts';
import { emptyLedgerData, type MemoryLedgerData } from '../../support/memory-store/ledger-data.ts';
import { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';
import { MemoryRecordStore } from '../../support/memory-store/record-store.ts';
import { faultyLedgerStore, type StoreFault, scriptedFaults } from '../../support/store-faults.ts';
import { chainOf, startMs } from '../../support/world.ts';

/** More than two commits take. */
const events = chainOf(
  openLedger(),
  createMaster({ commandKeys: [commandKey('made', 'asks', true)] }),
  grant(),
  ...Array.from({ length: 140 }, (_, n) =>
    append({ payload: `{"n":${n}}`, commandKeys: n === 5 ? [commandKey('noted')] : [] }),
  ),
).events;
const head: Head = { seq: events.length - 1, hash: events.at(-1)?.hash ?? '' };

/** A chain of which one event has another place in its master, every hash made anew. */
function relinked(list: readonly LedgerEvent[], at: number, place: Partial<MasterLink>): LedgerEvent[] {
  let prevHash = '';
  return list.map((event) => {
    const master = event.seq === at && event.master !== null ? { ...event.master, ...place } : event.master;
    const moved = { ...event, master, prevHash };
    const hashed = { ...moved, contentHash: contentHash(contentJson(moved)) };
    prevHash = eventHash(prevHash, hashed.contentHash);
    return { ...hashed, hash: prevHash };
  });
}

interface Memory {
  readonly data: MemoryLedgerData;
  readonly store: LedgerStore;
}

async function memory(list: readonly LedgerEvent[] = [], nowMs = startMs): Promise<Memory> {
  const data = emptyLedgerData();
  const store = new MemoryLedgerStore(() => nowMs, data);
  if (list.length > 0) await store.append(await store.claim(ledgerId), chainEntries(list));
  return { data, store };
}

/** All that readers can find of the ledger. */
function seen({ data }: Memory): unknown {
  const { head: end, entries, scopes, commands } = data.ledgers.get(ledgerId) ?? {};
  return { end, entries, scopes, commands, cells: data.cells, lines: data.lines };
}

async function copy(source: LedgerStore, target: LedgerStore, end = head, nowMs = startMs): Promise<number> {
  let count = 0;
  const copied = (more: number) => {
    count += more;
  };
  await copyLedger({ source, target, now: () => nowMs, copied }, ledgerId, end);
  return count;
}

describe('a copied ledger', () => {
  test('is in the target as its writer would have written it, with all its look-ups', async () => {
    const [source, target] = [await memory(events), await memory()];
    expect(await copy(source.store, target.store)).toBe(events.length);
    expect(seen(target)).toEqual(seen(source));
  });

  test('is skipped if it exists', async () => {
    const [source, target] = [await memory(events), await memory(events)];
    const before = structuredClone(seen(target));
    expect(await copy(source.store, target.store)).toBe(events.length);
    expect(seen(target)).toEqual(before);
  });

  test('is left as it is if it has grown in the target', async () => {
    const [source, target] = [await memory(events.slice(0, 100)), await memory(events)];
    const shorter = { seq: 99, hash: events[99]?.hash ?? '' };
    await copy(source.store, target.store, shorter);
    expect(target.data.ledgers.get(ledgerId)?.head).toEqual(head);
    expect(target.data.ledgers.get(ledgerId)?.claims).toBe(1);
  });

  test.for<StoreFault>(['unavailable', 'lost', 'applied', 'late', 'late-before-claim'])(
    'is complete after an append that is %s',
    async (fault) => {
      const [source, target] = [await memory(events), await memory()];
      const faults = scriptedFaults();
      faults.fail('append', fault);
      faults.fail('claim', 'unavailable');
      expect(await copy(source.store, faultyLedgerStore(target.store, faults.choose))).toBe(events.length);
      expect(seen(target)).toEqual(seen(source));
    },
  );

  test('is continued from any place where the copy was broken off', async () => {
    const source = await memory(events);
    for (const length of [1, 2, 64, 65, events.length - 1]) {
      const target = await memory(events.slice(0, length));
      await copy(source.store, target.store);
      expect(seen(target)).toEqual(seen(source));
    }
  });

  test('has permanent command keys only a day later', async () => {
    const dayLater = startMs + 25 * 60 * 60_000;
    const [source, target] = [await memory(events), await memory([], dayLater)];
    await copy(source.store, target.store, head, dayLater);
    const copied = target.data.ledgers.get(ledgerId);
    expect([...(copied?.permanentCommands.keys() ?? [])]).toEqual(['made']);
    expect(copied?.commands.size).toBe(0);
  });

  test.for([
    ['a payload', (row: string) => row.replace('"n":60', '"n":61')],
    ['a hash', (row: string) => row.replace(/"hash":"\w{4}/, '"hash":"0000')],
    ['a link', (row: string) => row.replace(/"prev_hash":"\w{4}/, '"prev_hash":"0000')],
    ['everything', () => 'svc1\nno\nevent\nat\nall'],
    ['the format', (row: string) => row.replace('svc1', 'svc9')],
  ] as const)('of which %s was changed stops before that event, and says where', async ([, change]) => {
    const [source, target] = [await memory(events), await memory()];
    const at = events.find((event) => event.payload.includes('"n":60'))?.seq ?? -1;
    const entry = source.data.ledgers.get(ledgerId)?.entries.get(at);
    if (entry === undefined) throw new Error('no such entry');
    expect(change(entry.row)).not.toBe(entry.row);
    source.data.ledgers.get(ledgerId)?.entries.set(at, { seq: at, row: change(entry.row) });
    await expect(copy(source.store, target.store)).rejects.toThrow(`is damaged at seq ${at} (`);
    expect(target.data.ledgers.get(ledgerId)?.head?.seq ?? -1).toBeLessThan(at);
  });

  test.for([
    ['all at once', 0],
    ['going on from just before it', 30],
  ] as const)('of which a master names another event before it stops there, copied %s', async ([, there]) => {
    const chain = chainOf(
      openLedger(),
      createMaster(),
      createMaster({ masterId: siblingId }),
      ...Array.from({ length: 40 }, (_, n) => append({ masterId: n % 2 === 0 ? masterId : siblingId })),
    ).events;
    const wrong = relinked(chain, 30, { prevHash: chain[26]?.contentHash ?? '' });
    const again = relinked(chain, 30, { prevHash: '', seq: 0 });
    for (const list of [wrong, again]) {
      const [source, target] = [await memory(list), await memory(list.slice(0, there))];
      const end = { seq: list.length - 1, hash: list.at(-1)?.hash ?? '' };
      await expect(copy(source.store, target.store, end)).rejects.toThrow('is damaged at seq 30 (');
      expect(target.data.ledgers.get(ledgerId)?.head?.seq ?? -1).toBeLessThan(30);
    }
  });

  test.for(['{}', 'null', 'no JSON'])(
    'of which a grant has the payload %s stops before that event',
    async (payload) => {
      const entries = entriesEndingIn(payload, chainOf(openLedger(), createMaster(), grant()).events);
      const { seq = 0, hash = '' } = entries.at(-1) ?? {};
      const [source, target] = [await memory(), await memory()];
      await source.store.append(await source.store.claim(ledgerId), entries);
      const refusal = new CopyRefused(
        `Ledger ${ledgerId} is damaged at seq ${seq} (its payload cannot be read), and was not copied from there on: restore it from a backup, and copy again.`,
      );
      await expect(copy(source.store, target.store, { seq, hash })).rejects.toThrow(refusal);
      expect(target.data.ledgers.get(ledgerId)?.head?.seq ?? -1).toBeLessThan(seq);
    },
  );

  test('ends before a missing event', async () => {
    const [source, target] = [await memory(events), await memory()];
    source.data.ledgers.get(ledgerId)?.entries.delete(64);
    await expect(copy(source.store, target.store)).rejects.toThrow('is damaged at seq');
    expect(target.data.ledgers.get(ledgerId)?.head?.seq).toBeLessThan(64);
  });

  test('is refused if the target has another ledger of its id', async () => {
    const others = chainOf(openLedger(), createMaster({ businessRef: 'another' })).events;
    const [source, target] = [await memory(events), await memory(others)];
    const before = structuredClone(seen(target));
    await expect(copy(source.store, target.store)).rejects.toThrow(
      `stands in the target with another event at seq ${others.length - 1}, and is left as it is`,
    );
    expect(seen(target)).toEqual(before);
  });
});

describe('copied records', () => {
  const record = (id: string, value: string, more: object = {}) => {
    return { kind: 'actor', id, value, lookups: [{ name: 'world', value: 'none', order: id }], ...more };
  };

  test('are put with their look-ups and counted; one that the target has with another value is refused and not counted', async () => {
    const target = new MemoryRecordStore();
    const refused: string[] = [];
    let copied = 0;
    const run = (value: string) =>
      copyRecords({
        records: [record('a', value), record('b', '{}'), record('gone', '{}', { expiresAt: 99 })],
        target,
        nowMs: 100,
        copied: () => {
          copied += 1;
        },
        refused: (sentence) => void refused.push(sentence),
      });
    await run('{"keys":1}');
    await run('{"keys":1}');
    expect(refused).toEqual([]);
    expect(copied).toBe(4);
    await run('{"keys":2}');
    // Neither the record that is refused nor the one that has expired is counted as copied.
    expect(copied).toBe(5);
    expect(refused).toEqual([
      expect.stringMatching(/^The actor a stands in the target as another one, and is left as it is/),
    ]);
    const found = await target.find('actor', { name: 'world', value: 'none' }, { limit: 10 });
    expect(found.map(({ id, value }) => [id, value])).toEqual([
      ['a', '{"keys":1}'],
      ['b', '{}'],
    ]);
  });

  const oldKey = newSigningKey();

  /** A store that a node has served. `signed` false: a version before 0.2.0 wrote the list of the authority's keys. */
  async function served({ signed = true, key = oldKey, secrets = '"ours"' } = {}): Promise<MemoryRecordStore> {
    const records = new MemoryRecordStore();
    await openAuthority(records, key, isoTime(startMs));
    if (!signed) await storeAuthority(records, ({ keys }) => ({ keys }));
    await records.put({ kind: 'node', id: 'secrets-key', replaces: 'absent', value: secrets, lookups: [] });
    return records;
  }

  async function storeAuthority(records: MemoryRecordStore, change: (value: { keys: unknown[] }) => unknown) {
    const { value = '', version = '' } = (await records.get('authority', 'keys')) ?? {};
    const changed = JSON.stringify(change(JSON.parse(value)));
    await records.put({ kind: 'authority', id: 'keys', replaces: version, value: changed, lookups: [] });
  }

  async function authorityOf(records: MemoryRecordStore): Promise<WholeRecord> {
    const { value = '' } = (await records.get('authority', 'keys')) ?? {};
    return { kind: 'authority', id: 'keys', value, lookups: [] };
  }

  test('a source that no node has served is refused', async () => {
    await expect(checkOwner(new MemoryRecordStore(), new MemoryRecordStore())).rejects.toThrow(
      'No node has ever served this data',
    );
  });

  test('a target of another authority or another key of secrets is refused', async () => {
    const source = await served();
    await checkOwner(source, new MemoryRecordStore());
    await checkOwner(source, await served());
    await expect(checkOwner(source, await served({ key: newSigningKey() }))).rejects.toThrow(
      /sealed by another authority/,
    );
    await expect(checkOwner(source, await served({ secrets: '"theirs"' }))).rejects.toThrow(
      /encrypted under another key/,
    );
  });

  test.for([[true], [false]] as const)(
    'a list of keys that the source has signed (%s) and the target not, or the other way round, is the same',
    async ([signed]) => {
      const [source, target] = [await served({ signed }), await served({ signed: !signed })];
      await checkOwner(source, target);
      const before = await authorityOf(target);
      const refused: string[] = [];
      const records = [await authorityOf(source)];
      await copyRecords({ records, target, nowMs: 0, copied: () => {}, refused: (what) => void refused.push(what) });
      expect(refused).toEqual([]);
      expect(await authorityOf(target)).toEqual(before);
    },
  );

  test('a source whose list of keys is not believed is refused', async () => {
    const source = await served();
    await storeAuthority(source, (value) => ({ ...value, listSig: 'AAAA' }));
    await expect(checkOwner(source, new MemoryRecordStore())).rejects.toThrow(/is not as .*key-1 has signed it/);
    const older = await served();
    await rotateAuthority(older, oldKey, newSigningKey(), isoTime(startMs));
    await storeAuthority(older, ({ keys }) => ({ keys }));
    await expect(checkOwner(older, new MemoryRecordStore())).rejects.toThrow(/`ledger-trust authority confirm`/);
  });
});

describe('copied access histories', () => {
  const actorId = uuid(0xa);
  const event = (minute: number): AccessEvent => ({
    id: uuidV7(startMs + minute * 60_000, Buffer.alloc(10, minute)),
    actorId,
    apiKeyId: null,
    ledgerId,
    method: 'GET',
    path: '/v1/ledgers',
    responseStatus: 200,
    requestId: `request-${minute}`,
  });
  const all = { ledgerId: null, since: 0, limit: 10_000, offset: 0, descending: false };

  test('are complete, in order and without duplicates, however often they are copied', async () => {
    const [source, target] = [new MemoryAccessLog(), new MemoryAccessLog()];
    const made = Array.from({ length: 200 }, (_, minute) => event(minute));
    await source.append(made);
    for (let times = 0; times < 2; times += 1) await copyAccesses(source, target, actorId, 0);
    expect(await target.list(actorId, all)).toEqual(made);
    expect(await target.list(uuid(0xb), all)).toEqual([]);
  });

  test('begin at the given place', async () => {
    const [source, target] = [new MemoryAccessLog(), new MemoryAccessLog()];
    await source.append([event(1), event(2), event(3)]);
    await copyAccesses(source, target, actorId, startMs + 2 * 60_000);
    expect(await target.list(actorId, all)).toEqual([event(2), event(3)]);
  });
});
