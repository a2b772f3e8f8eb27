import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { LedgerError } from '../../src/domain/errors.ts';
import type { Projection } from '../../src/domain/event/projection.ts';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import { Fenced, type LedgerStore, OutcomeUnknown } from '../../src/store/ledger-store.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { type DecideFault, faultySession } from '../support/cassandra-faults.ts';
import { entriesAfter, entriesFor, headOf, newLedgerId } from '../support/store-entries.ts';
import { openStores, suiteKeyspace, withClient } from './cassandra-factory.ts';

const bucketEvents = 8;
const unavailable = { code: 'unavailable' };
const outcomeUnknown = { code: 'outcome_unknown' };
const codeOf = (error: unknown) => (error instanceof LedgerError ? error.code : String(error));

await describeOnCassandra('Faults between the stores and Cassandra', (address) => {
  const { settings, open } = suiteKeyspace(address, bucketEvents);
  /** Another node, to which nothing happens. */
  let sound: CassandraStores;
  beforeAll(async () => {
    sound = await open();
  });

  async function newNode() {
    const faults = faultySession();
    const stores = await openStores(settings, Date.now, faults.around);
    onTestFinished(() => stores[Symbol.asyncDispose]());
    return { faults, ledgers: stores.ledgers, records: stores.records };
  }
  const everyKind =
    (name: string) =>
    (seq: number): Projection[] => [
      { kind: 'scope', scope: name },
      { kind: 'command', command: { id: `${name} ${seq}`, fingerprint: 'f', permanent: seq % 2 === 0 } },
      { kind: 'cell', key: name, value: `v${seq}` },
      { kind: 'line', list: name, order: `o${seq}`, value: 'v' },
    ];
  /** How many events of a ledger each kind of projection knows. */
  async function projected(store: LedgerStore, ledgerId: string, upTo: number) {
    const commandKeys = Array.from({ length: upTo }, (_, seq) => ({
      id: `${ledgerId} ${seq}`,
      permanent: seq % 2 === 0,
    }));
    return {
      scope: (await store.readScope(ledgerId, ledgerId, { limit: 100 })).entries.length,
      commands: (await store.findCommands(ledgerId, commandKeys)).size,
      cell: (await store.cell(ledgerId))?.version ?? null,
      lines: (await store.lines(ledgerId, { limit: 100 })).length,
    };
  }
  const all = (count: number) => ({ scope: count, commands: count, cell: count - 1, lines: count });
  const none = { scope: 0, commands: 0, cell: null, lines: 0 };

  describe('an append', () => {
    test.each<[DecideFault, boolean]>([
      ['applied', true],
      ['lost', false],
      ['late', false],
    ])(
      'that is %s fails with OutcomeUnknown, and a claim by any node settles and projects it',
      async (fault, lands) => {
        for (const claimer of ['the same', 'another']) {
          const { faults, ledgers } = await newNode();
          const claim = await ledgers.claim(newLedgerId());
          const { ledgerId } = claim;
          const entries = entriesFor(claim, 3, { projections: everyKind(ledgerId) });
          faults.failDecisions(fault);
          await expect(ledgers.append(claim, entries)).rejects.toBeInstanceOf(OutcomeUnknown);
          expect(await projected(sound.ledgers, ledgerId, 3)).toEqual(none);
          const next = claimer === 'another' ? sound.ledgers : ledgers;
          const newer = await next.claim(ledgerId);
          expect(newer.head).toEqual(lands ? headOf(entries) : null);
          expect(await projected(sound.ledgers, ledgerId, 3)).toEqual(lands ? all(3) : none);
          expect(await faults.arrive()).toEqual(fault === 'late' ? [false] : []);
          expect((await sound.ledgers.read(ledgerId, 0, 9)).length).toBe(lands ? 3 : 0);
          await next.append(newer, entriesAfter(newer.head, 1));
          expect((await sound.ledgers.head(ledgerId))?.seq).toBe(lands ? 3 : 0);
        }
      },
    );

    test('that arrives late but before the claim is written', async () => {
      const { faults, ledgers } = await newNode();
      const claim = await ledgers.claim(newLedgerId());
      const entries = entriesFor(claim, 3, { projections: everyKind(claim.ledgerId) });
      faults.failDecisions('late');
      await expect(ledgers.append(claim, entries)).rejects.toBeInstanceOf(OutcomeUnknown);
      expect(await faults.arrive()).toEqual([true]);
      expect((await sound.ledgers.claim(claim.ledgerId)).head).toEqual(headOf(entries));
      expect(await projected(sound.ledgers, claim.ledgerId, 3)).toEqual(all(3));
    });

    test.each(['begins', 'ends'])('that arrives late is fenced where it %s a bucket', async (where) => {
      const { faults, ledgers } = await newNode();
      const claim = await ledgers.claim(newLedgerId());
      const first = entriesFor(claim, where === 'begins' ? 8 : 5);
      await ledgers.append(claim, first);
      const entries = entriesAfter(headOf(first), 6, { salt: 'late' });
      faults.failDecisions('late');
      await expect(ledgers.append(claim, entries)).rejects.toBeInstanceOf(OutcomeUnknown);
      const newer = await sound.ledgers.claim(claim.ledgerId);
      expect(newer.head).toEqual(headOf(first));
      expect(await faults.arrive()).toEqual([false]);
      await sound.ledgers.append(newer, entriesAfter(newer.head, 8));
      expect((await sound.ledgers.head(claim.ledgerId))?.seq).toBe(first.length + 7);
    });

    test('is answered once its projections are written, also after failures', async () => {
      const { faults, ledgers } = await newNode();
      const claim = await ledgers.claim(newLedgerId());
      for (const table of ['scope_bucket', 'command', 'cell', 'line']) faults.failWrites(table, 1);
      await ledgers.append(claim, entriesFor(claim, 3, { projections: everyKind(claim.ledgerId) }));
      expect(await projected(sound.ledgers, claim.ledgerId, 3)).toEqual(all(3));
    });

    test.each(['scope_bucket', 'command', 'cell', 'line'])(
      'has an unknown outcome without its projections into %s, which the next claim completes',
      async (table) => {
        const { faults, ledgers } = await newNode();
        const claim = await ledgers.claim(newLedgerId());
        const { ledgerId } = claim;
        // Into the next bucket, where its scope is not listed yet.
        await ledgers.append(claim, entriesFor(claim, 8, { projections: everyKind(ledgerId) }));
        const more = entriesAfter(await ledgers.head(ledgerId), 3, { projections: everyKind(ledgerId) });
        faults.failWrites(table, 1_000);
        await expect(ledgers.append(claim, more)).rejects.toBeInstanceOf(OutcomeUnknown);
        expect(await projected(sound.ledgers, ledgerId, 11)).not.toEqual(all(11));
        expect((await sound.ledgers.claim(ledgerId)).head).toEqual(headOf(more));
        expect(await projected(sound.ledgers, ledgerId, 11)).toEqual(all(11));
      },
    );

    test('of a crashed process is projected by the next claim, also at the end of a bucket', async () => {
      for (const size of [3, 8]) {
        const { faults, ledgers } = await newNode();
        const claim = await ledgers.claim(newLedgerId());
        const { ledgerId } = claim;
        faults.failDecisions('applied');
        const entries = entriesFor(claim, size, { projections: everyKind(ledgerId) });
        await expect(ledgers.append(claim, entries)).rejects.toBeInstanceOf(OutcomeUnknown);
        faults.crash();
        const newer = await sound.ledgers.claim(ledgerId);
        expect(newer.head).toEqual(headOf(entries));
        expect(await projected(sound.ledgers, ledgerId, size)).toEqual(all(size));
      }
    });

    test('projects the last batch of its claim first, in any process', async () => {
      const { faults, ledgers } = await newNode();
      const claim = await ledgers.claim(newLedgerId());
      const { ledgerId } = claim;
      const first = entriesFor(claim, 8, { projections: everyKind(ledgerId) });
      faults.failDecisions('applied');
      await expect(ledgers.append(claim, first)).rejects.toBeInstanceOf(OutcomeUnknown);
      await sound.ledgers.append(claim, entriesAfter(headOf(first), 1));
      expect(await projected(sound.ledgers, ledgerId, 8)).toEqual(all(8));
    });

    test('is sent only once', async () => {
      const { faults, ledgers } = await newNode();
      const claim = await ledgers.claim(newLedgerId());
      const before = faults.sent.length;
      faults.failDecisions('lost');
      await expect(ledgers.append(claim, entriesFor(claim, 1))).rejects.toBeInstanceOf(OutcomeUnknown);
      expect(faults.sent.slice(before).filter((cql) => cql.startsWith('UPDATE ledger_event')).length).toBe(1);
    });
  });

  describe('a claim', () => {
    test.each<[DecideFault, boolean]>([
      ['applied', false],
      ['lost', true],
      ['late', true],
    ])('that is %s is unavailable and has fenced at most the claim before it', async (fault, stands) => {
      const { faults, ledgers } = await newNode();
      const claim = await sound.ledgers.claim(newLedgerId());
      faults.failDecisions(fault);
      await expect(ledgers.claim(claim.ledgerId)).rejects.toMatchObject(unavailable);
      expect(await sound.ledgers.stands(claim, null)).toBe(stands);
      if (stands) await sound.ledgers.append(claim, entriesFor(claim, 1));
      else await expect(sound.ledgers.append(claim, entriesFor(claim, 1))).rejects.toBeInstanceOf(Fenced);
      // By now it would take over a ledger that is not as it saw it.
      expect(await faults.arrive()).toEqual(fault === 'late' ? [false] : []);
    });

    test('is unavailable until it has completed the projections before it', async () => {
      const { faults, ledgers } = await newNode();
      const claim = await ledgers.claim(newLedgerId());
      const { ledgerId } = claim;
      faults.failDecisions('applied');
      const entries = entriesFor(claim, 2, { projections: everyKind(ledgerId) });
      await expect(ledgers.append(claim, entries)).rejects.toBeInstanceOf(OutcomeUnknown);
      faults.failWrites('cell', 4);
      await expect(ledgers.claim(ledgerId)).rejects.toMatchObject(unavailable);
      await ledgers.claim(ledgerId);
      expect(await projected(sound.ledgers, ledgerId, 2)).toEqual(all(2));
    });
  });

  describe('a record', () => {
    const look = { name: 'n', value: 'v' };
    const writeOf = (kind: string, value = '1', replaces = 'absent') => {
      return { kind, id: 'i', replaces, value, lookups: [{ ...look, order: '0' }] };
    };

    test.each<DecideFault[]>([['applied'], ['lost'], ['late'], ['applied', 'applied'], ['lost', 'applied']])(
      'is settled and found after a put that is %s %s',
      async (...given) => {
        const { faults, records } = await newNode();
        const kind = newLedgerId();
        faults.failDecisions(...given);
        const result = await records.put(writeOf(kind));
        expect(result).toMatchObject({ ok: true });
        expect(await sound.records.find(kind, look, { limit: 9 })).toMatchObject([{ value: '1' }]);
        expect((await faults.arrive()).every((applied) => !applied)).toBe(true);
      },
    );

    test('is outcome_unknown after a put that is never settled, and the next put finds out', async () => {
      const { faults, records } = await newNode();
      const kind = newLedgerId();
      faults.failDecisions('lost', 'lost', 'lost');
      await expect(records.put(writeOf(kind))).rejects.toMatchObject(outcomeUnknown);
      expect(await sound.records.find(kind, look, { limit: 9 })).toEqual([]);
      faults.failDecisions('applied', 'lost', 'lost');
      await expect(records.put(writeOf(kind, '2'))).rejects.toMatchObject(outcomeUnknown);
      expect(await records.put(writeOf(kind, '3'))).toMatchObject({ ok: false, current: { value: '2' } });
      expect(await sound.records.find(kind, look, { limit: 9 })).toMatchObject([{ value: '2' }]);
    });

    test('that another node replaces does not settle a put in doubt', async () => {
      const { faults, records } = await newNode();
      const kind = newLedgerId();
      const first = await sound.records.put(writeOf(kind));
      const version = first.ok ? first.version : '';
      faults.failDecisions('applied', 'lost');
      const doubtful = records.put(writeOf(kind, '2', version)).then(({ ok }) => ok, codeOf);
      let current = await sound.records.get(kind, 'i');
      while (current?.value !== '2') current = await sound.records.get(kind, 'i');
      await sound.records.put(writeOf(kind, '3', current.version));
      expect([true, outcomeUnknown.code]).toContain(await doubtful);
      expect((await sound.records.get(kind, 'i'))?.value).toBe('3');
    });

    test('that another node puts again does not settle a removal in doubt', async () => {
      const { faults, records } = await newNode();
      const kind = newLedgerId();
      const first = await sound.records.put(writeOf(kind));
      faults.failDecisions('applied', 'lost');
      const doubtful = records.remove(kind, 'i', first.ok ? first.version : '').catch(codeOf);
      while ((await sound.records.get(kind, 'i')) !== null);
      await sound.records.put(writeOf(kind, '2'));
      expect([true, outcomeUnknown.code]).toContain(await doubtful);
      expect((await sound.records.get(kind, 'i'))?.value).toBe('2');
    });

    test('is not restored by a put that arrives after its removal', async () => {
      const { faults, records } = await newNode();
      const kind = newLedgerId();
      faults.failDecisions('late');
      const result = await records.put(writeOf(kind));
      await sound.records.remove(kind, 'i', result.ok ? result.version : '');
      expect(await faults.arrive()).toEqual([false]);
      expect(await sound.records.get(kind, 'i')).toBeNull();
      expect(await sound.records.find(kind, look, { limit: 9 })).toEqual([]);
      expect(await sound.records.put(writeOf(kind, 'again'))).toMatchObject({ ok: true });
    });

    test('is settled after a removal in doubt', async () => {
      const { faults, records } = await newNode();
      const kind = newLedgerId();
      const result = await records.put(writeOf(kind));
      faults.failDecisions('applied', 'lost');
      expect(await records.remove(kind, 'i', result.ok ? result.version : '')).toBe(true);
      expect(await sound.records.get(kind, 'i')).toBeNull();
    });

    test('is not put if its index row cannot be written', async () => {
      const { faults, records } = await newNode();
      const kind = newLedgerId();
      faults.failWrites('record_lookup', 1);
      await expect(records.put(writeOf(kind))).rejects.toMatchObject(unavailable);
      expect(await sound.records.get(kind, 'i')).toBeNull();
      await records.put(writeOf(kind));
      expect((await sound.records.find(kind, look, { limit: 9 })).length).toBe(1);
    });
  });

  test('without enough replicas every call fails, and with them again calls succeed', async () => {
    const { ledgers, records } = await newNode();
    const claim = await ledgers.claim(newLedgerId());
    const replicas = (count: number) =>
      withClient(settings, (client) =>
        client.execute(
          `ALTER KEYSPACE ${settings.keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${settings.localDataCenter}': ${count}}`,
        ),
      );
    await replicas(3);
    try {
      const appended = await ledgers.append(claim, entriesFor(claim, 1)).catch((error: unknown) => error);
      expect(appended).toBeInstanceOf(Error);
      await expect(ledgers.claim(claim.ledgerId)).rejects.toMatchObject(unavailable);
      await expect(ledgers.read(claim.ledgerId, 0, 1)).rejects.toMatchObject(unavailable);
      await expect(records.get('k', 'i')).rejects.toMatchObject(unavailable);
    } finally {
      await replicas(1);
    }
    await expect.poll(() => ledgers.claim(claim.ledgerId).then(({ head }) => head), { timeout: 5_000 }).toBeNull();
    const again = await ledgers.claim(claim.ledgerId);
    await ledgers.append(again, entriesFor(again, 1));
  });
});
