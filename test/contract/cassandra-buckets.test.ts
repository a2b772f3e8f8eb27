import { beforeAll, describe, expect, test } from 'vitest';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import { Fenced } from '../../src/store/ledger-store.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { isNightly } from '../support/nightly.ts';
import { appendBatches, entriesAfter, entriesFor, headOf, newLedgerId, seqsFrom } from '../support/store-entries.ts';
import { execute, suiteKeyspace } from './cassandra-factory.ts';

const bucketEvents = 8;

await describeOnCassandra('Buckets of eight events on Cassandra', (address) => {
  const { settings, open } = suiteKeyspace(address, bucketEvents);
  let one: CassandraStores;
  let other: CassandraStores;
  beforeAll(async () => {
    one = await open();
    other = await open();
  });

  /** A ledger with batches of these sizes, written under one claim. */
  async function ledgerOf(...sizes: number[]) {
    const claim = await one.ledgers.claim(newLedgerId());
    const head = await appendBatches(one.ledgers, claim, claim.head, sizes);
    return { ledgerId: claim.ledgerId, claim, head };
  }

  describe.each([
    ['batches that end where buckets do', [8, 8, 8]],
    ['single events', Array.from({ length: isNightly ? 25 : 17 }, () => 1)],
    ['batches that run over the end of their bucket', [5, 5, 5, 5, 5]],
    ['batches that run to the end of the next one', [7, 8, 1, 8, 1]],
    ['a batch that runs over by all but one', [1, 6, 8, 8, 2]],
  ])('%s', (_name, sizes) => {
    const total = sizes.reduce((sum, size) => sum + size, 0);

    test('are read as one log by every reader from every seq', async () => {
      const { ledgerId, head } = await ledgerOf(...sizes);
      for (const store of [one.ledgers, other.ledgers]) {
        expect(await store.head(ledgerId)).toEqual(head);
        for (const from of seqsFrom(0, total + 2)) {
          const seqs = (await store.read(ledgerId, from, 1000)).map(({ seq }) => seq);
          expect(seqs).toEqual(seqsFrom(from, total));
          expect((await store.read(ledgerId, from, 3)).length).toBe(Math.max(0, Math.min(3, total - from)));
        }
        const scope = await store.readScope(ledgerId, 's', { limit: 1000 });
        expect(scope.entries.map(({ seq }) => seq)).toEqual(seqsFrom(0, total));
        expect(scope.missing).toEqual([]);
      }
    });

    test('leave the claim in force with its own head only', async () => {
      const { claim, head } = await ledgerOf(...sizes);
      expect(await other.ledgers.stands(claim, head)).toBe(true);
      expect(await other.ledgers.stands(claim, claim.head)).toBe(false);
      expect(await other.ledgers.stands(claim, { seq: total - 1, hash: '0'.repeat(64) })).toBe(false);
      await other.ledgers.claim(claim.ledgerId);
      expect(await one.ledgers.stands(claim, head)).toBe(false);
      expect(await other.ledgers.stands(claim, head)).toBe(false);
    });

    test('are fenced by a claim after any of them, and continue under it', async () => {
      // In the ordinary run of single events those about the ends of buckets.
      const looked = [...sizes.keys()].filter((done) => isNightly || sizes.length < 10 || [7, 0, 1].includes(done % 8));
      for (const done of looked) {
        const { ledgerId, claim, head } = await ledgerOf(...sizes.slice(0, done));
        const newer = await other.ledgers.claim(ledgerId);
        expect(newer.head).toEqual(head);
        const entries = entriesAfter(head, sizes[done] ?? 1, { salt: 'late' });
        await expect(one.ledgers.append(claim, entries)).rejects.toBeInstanceOf(Fenced);
        const end = await appendBatches(other.ledgers, newer, newer.head, sizes.slice(done));
        await expect(one.ledgers.append(claim, entries)).rejects.toBeInstanceOf(Fenced);
        expect(end?.seq).toBe(total - 1);
        expect((await one.ledgers.read(ledgerId, 0, 1000)).map(({ seq }) => seq)).toEqual(seqsFrom(0, total));
      }
    });
  });

  test('an older claim does not begin a bucket behind one of a newer claim, even with the right hash', async () => {
    const ledgerId = newLedgerId();
    const older = await one.ledgers.claim(ledgerId);
    const newer = await other.ledgers.claim(ledgerId);
    const entries = entriesFor(newer, 8);
    await other.ledgers.append(newer, entries);
    const next = entriesAfter(headOf(entries), 2);
    await expect(one.ledgers.append(older, next)).rejects.toBeInstanceOf(Fenced);
    expect(await one.ledgers.head(ledgerId)).toEqual(headOf(entries));
    await other.ledgers.append(newer, next);
    expect(await one.ledgers.head(ledgerId)).toEqual(headOf(next));
  });

  test('a bucket is not begun if its predecessor is not full or has another hash', async () => {
    const { ledgerId, claim, head } = await ledgerOf(6);
    const ahead = entriesAfter({ seq: 7, hash: '1'.repeat(64) }, 1);
    await expect(one.ledgers.append(claim, ahead)).rejects.toBeInstanceOf(Fenced);
    await appendBatches(one.ledgers, claim, head, [2]);
    await expect(one.ledgers.append(claim, ahead)).rejects.toBeInstanceOf(Fenced);
    await expect(one.ledgers.append(claim, entriesAfter({ seq: 15, hash: '1'.repeat(64) }, 1))).rejects.toBeInstanceOf(
      Fenced,
    );
    expect((await one.ledgers.head(ledgerId))?.seq).toBe(7);
  });

  test('a lost claim stays lost while its log grows by several buckets', async () => {
    const { ledgerId, claim, head } = await ledgerOf(3);
    const newer = await other.ledgers.claim(ledgerId);
    await appendBatches(other.ledgers, newer, head, [8, 8, 8]);
    const late = entriesAfter(head, 1, { salt: 'late' });
    await expect(one.ledgers.append(claim, late)).rejects.toBeInstanceOf(Fenced);
    expect(await one.ledgers.stands(claim, head)).toBe(false);
  });

  test('writers that claim from each other over many buckets make one chain', async () => {
    const ledgerId = newLedgerId();
    const written: string[] = [];
    await Promise.all(
      [one, other].map(async ({ ledgers }, writer) => {
        for (let done = 0; done < 15; ) {
          const claim = await ledgers.claim(ledgerId);
          const entries = entriesFor(claim, 1 + (done % 5), { salt: `${writer}` });
          try {
            await ledgers.append(claim, entries);
            written.push(...entries.map(({ row }) => row));
            done++;
          } catch (error) {
            expect(error).toBeInstanceOf(Fenced);
          }
        }
      }),
    );
    const log = await one.ledgers.read(ledgerId, 0, 1000);
    expect(log.map(({ seq }) => seq)).toEqual(seqsFrom(0, written.length));
    expect(log.map(({ row }) => row).sort()).toEqual(written.sort());
  });

  test('an append longer than a bucket is a RangeError and writes nothing', async () => {
    const claim = await one.ledgers.claim(newLedgerId());
    await expect(one.ledgers.append(claim, entriesFor(claim, 9))).rejects.toBeInstanceOf(RangeError);
    expect(await one.ledgers.head(claim.ledgerId)).toBeNull();
  });

  test('a lost or wrong hint hides no event', async () => {
    const { ledgerId, head } = await ledgerOf(8, 8, 3);
    await execute(settings, 'DELETE FROM ledger WHERE ledger_id = ?', [ledgerId]);
    expect(await other.ledgers.head(ledgerId)).toEqual(head);
    await execute(settings, 'INSERT INTO ledger (ledger_id, bucket) VALUES (?, 9)', [ledgerId]);
    expect(await other.ledgers.head(ledgerId)).toEqual(head);
    expect((await other.ledgers.claim(ledgerId)).head).toEqual(head);
  });

  test('a batch lies whole in the bucket of its first event', async () => {
    const { ledgerId } = await ledgerOf(5, 5, 5);
    const cql = "SELECT bucket, seq FROM ledger_event WHERE ledger_id = ? AND bucket IN (0, 1) AND scope = ''";
    const rows = await execute(settings, cql, [ledgerId]);
    expect(rows.filter((row) => row.bucket === 0).length).toBe(10);
    expect(rows.filter((row) => row.bucket === 1).length).toBe(5);
  });
});
