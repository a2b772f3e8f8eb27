import { beforeAll, describe, expect, test } from 'vitest';
import { LedgerError } from '../../src/domain/errors.ts';
import type { Projection } from '../../src/domain/event/projection.ts';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import { Fenced, type Head, type LedgerEntry, OutcomeUnknown } from '../../src/store/ledger-store.ts';
import type { PutResult } from '../../src/store/record-store.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import type { DecideFault } from '../support/cassandra-faults.ts';
import { entriesAfter, entriesFor, headOf, newLedgerId } from '../support/store-entries.ts';
import { execute, suiteKeyspace } from './cassandra-factory.ts';

const bucketEvents = 8;
const unavailable = { code: 'unavailable' };
const outcomeUnknown = { code: 'outcome_unknown' };
const codeOf = (error: unknown) => (error instanceof LedgerError ? error.code : String(error));

await describeOnCassandra('Faults between the stores and Cassandra', (address) => {
  const { settings, open, faultyNode } = suiteKeyspace(address, bucketEvents);
  /** Another node, to which nothing happens. */
  let sound: CassandraStores;
  beforeAll(async () => {
    sound = await open();
  });

  /** A new node with a claim of a new ledger, and entries with projections of every kind. */
  async function newClaim() {
    const node = await faultyNode();
    const claim = await node.ledgers.claim(newLedgerId());
    const { ledgerId } = claim;
    const projections = everyKind(ledgerId);
    return {
      ...node,
      claim,
      ledgerId,
      entries: (count: number, head: Head | null = null) => entriesAfter(head, count, { projections }),
      /** Appends while the next decisions fail so. */
      appendInDoubt: async (fault: DecideFault, entries: readonly LedgerEntry[]) => {
        node.faults.failDecisions(fault);
        await expect(node.ledgers.append(claim, entries)).rejects.toBeInstanceOf(OutcomeUnknown);
      },
    };
  }
  const everyKind =
    (name: string) =>
    (seq: number): Projection[] => [
      { kind: 'scope', scope: name },
      { kind: 'command', command: { id: `${name} ${seq}`, fingerprint: 'f', permanent: seq % 2 === 0 } },
      { kind: 'cell', key: name, value: `v${seq}` },
      { kind: 'line', list: name, order: `o${seq}`, value: 'v' },
    ];
  /** How many events of a ledger another node finds by each kind of projection. */
  async function projected(ledgerId: string, upTo: number) {
    const { ledgers } = sound;
    const seqs = Array.from({ length: upTo }, (_, seq) => seq);
    const commandKeys = seqs.map((seq) => ({ id: `${ledgerId} ${seq}`, permanent: seq % 2 === 0 }));
    return {
      scope: (await ledgers.readScope(ledgerId, ledgerId, { limit: 100 })).entries.length,
      commands: (await ledgers.findCommands(ledgerId, commandKeys)).size,
      cell: (await ledgers.cell(ledgerId))?.version ?? null,
      lines: (await ledgers.lines(ledgerId, { limit: 100 })).length,
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
          const { faults, ledgers, ledgerId, entries, appendInDoubt } = await newClaim();
          await appendInDoubt(fault, entries(3));
          expect(await projected(ledgerId, 3)).toEqual(none);
          const next = claimer === 'another' ? sound.ledgers : ledgers;
          const newer = await next.claim(ledgerId);
          expect(newer.head).toEqual(lands ? headOf(entries(3)) : null);
          expect(await projected(ledgerId, 3)).toEqual(lands ? all(3) : none);
          expect(await faults.arrive()).toEqual(fault === 'late' ? [false] : []);
          expect((await sound.ledgers.read(ledgerId, 0, 9)).length).toBe(lands ? 3 : 0);
          await next.append(newer, entriesAfter(newer.head, 1));
          expect((await sound.ledgers.head(ledgerId))?.seq).toBe(lands ? 3 : 0);
        }
      },
    );

    test('that arrives late but before the claim is written', async () => {
      const { faults, ledgerId, entries, appendInDoubt } = await newClaim();
      await appendInDoubt('late', entries(3));
      expect(await faults.arrive()).toEqual([true]);
      expect((await sound.ledgers.claim(ledgerId)).head).toEqual(headOf(entries(3)));
      expect(await projected(ledgerId, 3)).toEqual(all(3));
    });

    test.each(['begins', 'ends'])('that arrives late is fenced where it %s a bucket', async (where) => {
      const { faults, ledgers, claim, appendInDoubt } = await newClaim();
      const first = entriesFor(claim, where === 'begins' ? 8 : 5);
      await ledgers.append(claim, first);
      await appendInDoubt('late', entriesAfter(headOf(first), 6, { salt: 'late' }));
      const newer = await sound.ledgers.claim(claim.ledgerId);
      expect(newer.head).toEqual(headOf(first));
      expect(await faults.arrive()).toEqual([false]);
      await sound.ledgers.append(newer, entriesAfter(newer.head, 8));
      expect((await sound.ledgers.head(claim.ledgerId))?.seq).toBe(first.length + 7);
    });

    test('is answered once its projections are written, also after failures', async () => {
      const { faults, ledgers, claim, ledgerId, entries } = await newClaim();
      for (const table of ['scope_bucket', 'command', 'cell', 'line']) faults.failWrites(table, 1);
      await ledgers.append(claim, entries(3));
      expect(await projected(ledgerId, 3)).toEqual(all(3));
    });

    test.each(['scope_bucket', 'command', 'cell', 'line'])(
      'has an unknown outcome without its projections into %s, which the next claim completes',
      async (table) => {
        const { faults, ledgers, claim, ledgerId, entries } = await newClaim();
        // Into the next bucket, where its scope is not listed yet.
        await ledgers.append(claim, entries(8));
        const more = entries(3, await ledgers.head(ledgerId));
        faults.failWrites(table, 1_000);
        await expect(ledgers.append(claim, more)).rejects.toBeInstanceOf(OutcomeUnknown);
        expect(await projected(ledgerId, 11)).not.toEqual(all(11));
        expect((await sound.ledgers.claim(ledgerId)).head).toEqual(headOf(more));
        expect(await projected(ledgerId, 11)).toEqual(all(11));
      },
    );

    test('of a crashed process is projected by the next claim, also at the end of a bucket', async () => {
      for (const size of [3, 8]) {
        const { faults, ledgerId, entries, appendInDoubt } = await newClaim();
        await appendInDoubt('applied', entries(size));
        faults.crash();
        const newer = await sound.ledgers.claim(ledgerId);
        expect(newer.head).toEqual(headOf(entries(size)));
        expect(await projected(ledgerId, size)).toEqual(all(size));
      }
    });

    test('projects the last batch of its claim first, in any process', async () => {
      const { claim, ledgerId, entries, appendInDoubt } = await newClaim();
      await appendInDoubt('applied', entries(8));
      await sound.ledgers.append(claim, entriesAfter(headOf(entries(8)), 1));
      expect(await projected(ledgerId, 8)).toEqual(all(8));
    });

    test('is sent only once', async () => {
      const { faults, claim, appendInDoubt } = await newClaim();
      const before = faults.sent.length;
      await appendInDoubt('lost', entriesFor(claim, 1));
      expect(faults.sent.slice(before).filter((cql) => cql.startsWith('UPDATE ledger_event')).length).toBe(1);
    });
  });

  describe('the certain head', () => {
    test.each<[DecideFault, boolean]>([
      ['applied', true],
      ['lost', false],
    ])('after an append that is %s is asked of another node and leaves the owner its claim', async (fault, lands) => {
      for (const size of [3, 8]) {
        const { ledgers, claim, ledgerId, entries, appendInDoubt } = await newClaim();
        await appendInDoubt(fault, entries(size));
        const head = lands ? headOf(entries(size)) : null;
        expect(await sound.ledgers.certainHead(ledgerId)).toEqual(head);
        expect(await ledgers.stands(claim, head)).toBe(true);
        await ledgers.append(claim, entriesAfter(head, 2));
        expect((await sound.ledgers.certainHead(ledgerId))?.seq).toBe((head?.seq ?? -1) + 2);
      }
    });

    test('does not fence an append that was sent before and arrives later', async () => {
      const { faults, ledgerId, entries, appendInDoubt } = await newClaim();
      await appendInDoubt('late', entries(3));
      expect(await sound.ledgers.certainHead(ledgerId)).toBeNull();
      expect(await faults.arrive()).toEqual([true]);
      expect(await sound.ledgers.certainHead(ledgerId)).toEqual(headOf(entries(3)));
    });
  });

  describe('a claim', () => {
    test.each<[DecideFault, boolean]>([
      ['applied', false],
      ['lost', true],
      ['late', true],
    ])('that is %s is unavailable and has fenced at most the claim before it', async (fault, stands) => {
      const { faults, ledgers } = await faultyNode();
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
      const { faults, ledgers, ledgerId, entries, appendInDoubt } = await newClaim();
      await appendInDoubt('applied', entries(2));
      faults.failWrites('cell', 4);
      await expect(ledgers.claim(ledgerId)).rejects.toMatchObject(unavailable);
      await ledgers.claim(ledgerId);
      expect(await projected(ledgerId, 2)).toEqual(all(2));
    });
  });

  describe('a record', () => {
    const look = { name: 'n', value: 'v' };
    const writeOf = (kind: string, value = '1', replaces = 'absent') => {
      return { kind, id: 'i', replaces, value, lookups: [{ ...look, order: '0' }] };
    };
    const versionOf = (result: PutResult) => (result.ok ? result.version : '');
    const foundBy = (kind: string) => sound.records.find(kind, look, { limit: 9 });

    test.each<DecideFault[]>([['applied'], ['lost'], ['late'], ['applied', 'applied'], ['lost', 'applied']])(
      'is settled and found after a put that is %s %s',
      async (...given) => {
        const { faults, records } = await faultyNode();
        const kind = newLedgerId();
        faults.failDecisions(...given);
        expect(await records.put(writeOf(kind))).toMatchObject({ ok: true });
        expect(await foundBy(kind)).toMatchObject([{ value: '1' }]);
        expect((await faults.arrive()).every((applied) => !applied)).toBe(true);
      },
    );

    test('is outcome_unknown after a put that is never settled, and the next put finds out', async () => {
      const { faults, records } = await faultyNode();
      const kind = newLedgerId();
      faults.failDecisions('lost', 'lost', 'lost');
      await expect(records.put(writeOf(kind))).rejects.toMatchObject(outcomeUnknown);
      expect(await foundBy(kind)).toEqual([]);
      faults.failDecisions('applied', 'lost', 'lost');
      await expect(records.put(writeOf(kind, '2'))).rejects.toMatchObject(outcomeUnknown);
      expect(await records.put(writeOf(kind, '3'))).toMatchObject({ ok: false, current: { value: '2' } });
      expect(await foundBy(kind)).toMatchObject([{ value: '2' }]);
    });

    test('that another node replaces does not settle a put in doubt', async () => {
      const { faults, records } = await faultyNode();
      const kind = newLedgerId();
      const version = versionOf(await sound.records.put(writeOf(kind)));
      faults.failDecisions('applied', 'lost');
      const doubtful = records.put(writeOf(kind, '2', version)).then(({ ok }) => ok, codeOf);
      let current = await sound.records.get(kind, 'i');
      while (current?.value !== '2') current = await sound.records.get(kind, 'i');
      await sound.records.put(writeOf(kind, '3', current.version));
      expect([true, outcomeUnknown.code]).toContain(await doubtful);
      expect((await sound.records.get(kind, 'i'))?.value).toBe('3');
    });

    test('that another node puts again does not settle a removal in doubt', async () => {
      const { faults, records } = await faultyNode();
      const kind = newLedgerId();
      const version = versionOf(await sound.records.put(writeOf(kind)));
      faults.failDecisions('applied', 'lost');
      const doubtful = records.remove(kind, 'i', version).catch(codeOf);
      while ((await sound.records.get(kind, 'i')) !== null);
      await sound.records.put(writeOf(kind, '2'));
      expect([true, outcomeUnknown.code]).toContain(await doubtful);
      expect((await sound.records.get(kind, 'i'))?.value).toBe('2');
    });

    test('is not restored by a put that arrives after its removal', async () => {
      const { faults, records } = await faultyNode();
      const kind = newLedgerId();
      faults.failDecisions('late');
      await sound.records.remove(kind, 'i', versionOf(await records.put(writeOf(kind))));
      expect(await faults.arrive()).toEqual([false]);
      expect(await sound.records.get(kind, 'i')).toBeNull();
      expect(await foundBy(kind)).toEqual([]);
      expect(await sound.records.put(writeOf(kind, 'again'))).toMatchObject({ ok: true });
    });

    test('is settled after a removal in doubt', async () => {
      const { faults, records } = await faultyNode();
      const kind = newLedgerId();
      const version = versionOf(await records.put(writeOf(kind)));
      faults.failDecisions('applied', 'lost');
      expect(await records.remove(kind, 'i', version)).toBe(true);
      expect(await sound.records.get(kind, 'i')).toBeNull();
    });

    test('is not put if its index row cannot be written', async () => {
      const { faults, records } = await faultyNode();
      const kind = newLedgerId();
      faults.failWrites('record_lookup', 1);
      await expect(records.put(writeOf(kind))).rejects.toMatchObject(unavailable);
      expect(await sound.records.get(kind, 'i')).toBeNull();
      await records.put(writeOf(kind));
      expect((await foundBy(kind)).length).toBe(1);
    });
  });

  test('without enough replicas every call fails, and with them again calls succeed', async () => {
    const { ledgers, records } = await faultyNode();
    const claim = await ledgers.claim(newLedgerId());
    const replicas = (count: number) =>
      execute(
        settings,
        `ALTER KEYSPACE ${settings.keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${settings.localDataCenter}': ${count}}`,
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
