import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { uuidV7 } from '../../src/domain/values/uuid.ts';
import type { AccessEvent, AccessLog } from '../../src/store/access-log.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { accessLogContract, accessOf } from './access-log.contract.ts';
import { cassandraFactory } from './cassandra-factory.ts';

await describeOnCassandra('Access histories on Cassandra', (address) => {
  accessLogContract('Cassandra', accessOf(cassandraFactory(address)));
});

await describeOnCassandra('Access histories that several nodes write', (address) => {
  const stores = cassandraFactory(address);
  const actorId = randomUUID();
  const ledgers = [randomUUID(), randomUUID()];
  let log: AccessLog;

  const answered = (atMs: number): AccessEvent => ({
    id: uuidV7(atMs, randomBytes(10)),
    actorId,
    apiKeyId: null,
    ledgerId: ledgers[atMs % 2] ?? null,
    method: 'GET',
    path: `/v1/${atMs},["`,
    responseStatus: 200,
    requestId: `request-${atMs}`,
  });
  const hourMs = 60 * 60 * 1000;
  /** Blocks that overlap, one within another, in any order, over the end of a second and of an hour too. */
  const blocks = [
    [1, 100],
    [2, 3, 7],
    [50, 51],
    [4, 5, 60],
    [hourMs - 1, hourMs + 5],
    [hourMs - 3, hourMs, hourMs + 9],
    [6],
    [990, 1_001, 1_500],
    [995, 999, 1_000],
  ];
  const all = blocks.flat().sort((left, right) => left - right);

  beforeAll(async () => {
    log = (await stores.open({ nowMs: 0 })).access;
    for (const block of blocks) await log.append(block.map(answered));
  });
  afterAll(() => stores.close());

  const times = async (descending: boolean, limit = 100, offset = 0, ledgerId: string | null = null) => {
    const events = await log.list(actorId, { ledgerId, since: 0, limit, offset, descending });
    return events.map(({ requestId }) => Number(requestId.slice('request-'.length)));
  };

  describe('are listed in the order of the answers', () => {
    test('as a whole in either direction', async () => {
      expect(await times(false)).toEqual(all);
      expect(await times(true)).toEqual(all.toReversed());
    });

    test('page by page in either direction', async () => {
      for (const [descending, sorted] of [
        [false, all],
        [true, all.toReversed()],
      ] as const)
        for (let offset = 0; offset <= all.length; offset++)
          expect(await times(descending, 3, offset)).toEqual(sorted.slice(offset, offset + 3));
    });

    test('for one ledger', async () => {
      const even = all.filter((at) => at % 2 === 0);
      expect(await times(true, 100, 0, ledgers[0])).toEqual(even.toReversed());
      expect(await times(false, 2, 1, ledgers[0])).toEqual(even.slice(1, 3));
    });
  });
});
