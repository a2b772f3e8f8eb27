import { beforeAll, describe, expect, test } from 'vitest';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import type { Claim, Head } from '../../src/store/ledger-store.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { appendBatches, newLedgerId, seqsFrom } from '../support/store-entries.ts';
import { suiteKeyspace } from './cassandra-factory.ts';

const bucketEvents = 8;

await describeOnCassandra('Reading while another node fills buckets of eight events', (address) => {
  const { open } = suiteKeyspace(address, bucketEvents);
  let writer: CassandraStores;
  let reader: CassandraStores;
  /** Called before each request of the reader. */
  let onRequest: () => Promise<void> = async () => {};
  beforeAll(async () => {
    writer = await open();
    reader = await open((session) => ({
      ...session,
      read: async (statement, options) => {
        await onRequest();
        return session.read(statement, options);
      },
    }));
  });

  /** A ledger that the writer adds batches to. */
  async function newLedger() {
    const claim: Claim = await writer.ledgers.claim(newLedgerId());
    let head: Head | null = null;
    const add = async (sizes: readonly number[]) => {
      head = await appendBatches(writer.ledgers, claim, head, sizes);
    };
    return { ledgerId: claim.ledgerId, add };
  }
  /**
   * What a reader gets if `meanwhile` is done before its request number `at`, and how many requests it made till then.
   */
  async function during<T>(work: () => Promise<T>, at: number | null, meanwhile: () => unknown) {
    let requests = 0;
    let isDone = false;
    onRequest = async () => {
      if (isDone || requests++ !== at) return;
      isDone = true;
      await meanwhile();
    };
    const answer = await work();
    onRequest = async () => {};
    return { answer, requests, isDone };
  }

  describe.each([
    ['that is filled to its end, and the next one begun', 2, [6], [2, 3]],
    ['that is filled over its end', 2, [5], [6, 4]],
    ['whose first seqs come with the batch that fills the one before', 9, [5], [6, 5, 1]],
    ['that was empty, and is full when its state is asked for', 8, [8], [8, 1]],
    ['that was not begun, nor the one before it full', 12, [5], [8, 8, 1]],
    ['behind which others are filled too', 2, [6], [2, 8, 8, 3]],
  ])('a bucket %s', (_name, from, stands, comes) => {
    const sum = (sizes: readonly number[]) => sizes.reduce((all, size) => all + size, 0);

    test('leaves no hole in an answer, whenever it is filled', async () => {
      for (let at = 0; ; at++) {
        const { ledgerId, add } = await newLedger();
        await add(stands);
        const read = () => reader.ledgers.read(ledgerId, from, 1000);
        const { answer, isDone } = await during(read, at, () => add(comes));
        const seqs = answer.map(({ seq }) => seq);
        expect(seqs).toEqual(seqsFrom(from, from + seqs.length));
        expect(seqs.length).toBeGreaterThanOrEqual(sum(stands) - from);
        if (!isDone) break;
        expect((await read()).map(({ seq }) => seq)).toEqual(seqsFrom(from, sum(stands) + sum(comes)));
      }
    });
  });

  test('a read of an idle log takes two requests for each bucket', async () => {
    const { ledgerId, add } = await newLedger();
    await add([8, 8, 3]);
    for (const [from, limit, expected] of [
      [0, 100, 6],
      [0, 8, 1],
      [3, 100, 6],
      [17, 2, 1],
    ] as const) {
      const read = () => reader.ledgers.read(ledgerId, from, limit);
      const { requests } = await during(read, null, () => {});
      expect(requests).toBe(expected);
    }
  });

  test.each([
    [15, 'ascending'],
    [16, 'ascending'],
    [15, 'descending'],
    [16, 'descending'],
  ] as const)('%i full buckets of a scope and a growing one leave no hole, read %s', async (full, order) => {
    const descending = order === 'descending';
    // The lists of buckets, the first and the last of those that are looked into, and the events themselves.
    for (const at of [0, 1, full, full + 1, full + 2, full + 3]) {
      const { ledgerId, add } = await newLedger();
      await add([...Array.from({ length: full }, () => 8), 5]);
      const read = () => reader.ledgers.readScope(ledgerId, 's', { limit: 1000, descending });
      const { answer, isDone } = await during(read, at, () => add([3, 8]));
      expect(isDone).toBe(true);
      expect(answer.missing).toEqual([]);
      const seqs = answer.entries.map(({ seq }) => seq);
      const all = seqsFrom(0, seqs.length);
      expect(seqs).toEqual(descending ? all.toReversed() : all);
      expect(seqs.length).toBeGreaterThanOrEqual(8 * full + 5);
    }
  });
});
