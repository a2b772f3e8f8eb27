import { beforeAll, expect, test } from 'vitest';
import type { Projection } from '../../src/domain/event/projection.ts';
import { CassandraInspection } from '../../src/store/cassandra/inspection.ts';
import { projectionWriter } from '../../src/store/cassandra/log/projection-writer.ts';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import type { CqlSession } from '../../src/store/cassandra/session/session.ts';
import type { StrayBucket } from '../../src/store/store-inspection.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { appendBatches, entriesAfter, newLedgerId, seqsFrom } from '../support/store-entries.ts';
import { execute, suiteKeyspace } from './cassandra-factory.ts';

const bucketEvents = 8;
const underS: Projection = { kind: 'scope', scope: 's' };

await describeOnCassandra('Buckets of eight events, inspected', (address) => {
  const { settings, open } = suiteKeyspace(address, bucketEvents);
  let stores: CassandraStores;
  let session: CqlSession;
  beforeAll(async () => {
    stores = await open((opened) => {
      session = opened;
      return opened;
    });
  });

  /** A ledger with batches of these sizes. */
  async function ledgerOf(...sizes: readonly number[]) {
    const claim = await stores.ledgers.claim(newLedgerId());
    await appendBatches(stores.ledgers, claim, claim.head, sizes);
    return { ledgerId: claim.ledgerId };
  }
  const run = (cql: string, params: readonly unknown[]) => execute(settings, cql, params);
  async function straysOf(ledgerId: string, through: CqlSession = session): Promise<StrayBucket[]> {
    const inspection = new CassandraInspection({ session: through, bucketEvents, now: Date.now });
    return (await Array.fromAsync(inspection.strayBuckets())).filter((stray) => stray.ledgerId === ledgerId);
  }
  const writer = () => projectionWriter({ session, bucketEvents, now: Date.now });

  test('all buckets behind an incomplete one are strays', async () => {
    const { ledgerId } = await ledgerOf(8, 8, 8, 3);
    expect(await straysOf(ledgerId)).toEqual([]);
    const bucket1 = [ledgerId, 1];
    await run("DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' AND seq > 12", bucket1);
    await run('UPDATE ledger_event SET head_seq = 12 WHERE ledger_id = ? AND bucket = ?', bucket1);
    await run('UPDATE ledger SET bucket = 1 WHERE ledger_id = ?', [ledgerId]);
    const end = { bucket: 1, seq: 12 };
    expect((await straysOf(ledgerId)).sort((a, b) => a.bucket - b.bucket)).toEqual([
      { ledgerId, bucket: 2, seq: 16, end },
      { ledgerId, bucket: 3, seq: 24, end },
    ]);
  });

  test('a bucket that the ledger reaches during the inspection is no stray', async () => {
    const { ledgerId } = await ledgerOf(8);
    // A claim alone stands in bucket 1, until its first event does.
    const claim = await stores.ledgers.claim(ledgerId);
    let isWritten = false;
    const during: CqlSession = {
      ...session,
      read: async (statement, options) => {
        if (statement.cql.startsWith('SELECT seq, head_seq') && statement.params[0] === ledgerId) {
          await stores.ledgers.append(claim, entriesAfter(claim.head, 1));
          isWritten = true;
        }
        return session.read(statement, options);
      },
    };
    expect(await straysOf(ledgerId)).toEqual([]);
    expect(await straysOf(ledgerId, during)).toEqual([]);
    expect(isWritten).toBe(true);
  });

  test('events are listed in their scope again, in order and in their bucket', async () => {
    // The second batch runs over the end of bucket 0.
    const { ledgerId } = await ledgerOf(5, 5, 4);
    const all = seqsFrom(0, 14);
    const listed = async () => {
      const { entries, missing } = await stores.ledgers.readScope(ledgerId, 's', { limit: 100 });
      return { seqs: entries.map(({ seq }) => seq), missing };
    };
    expect(await listed()).toEqual({ seqs: all, missing: [] });
    await run("DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = 's' AND seq = 5", [ledgerId]);
    await run("DELETE FROM scope_bucket WHERE ledger_id = ? AND scope = 's'", [ledgerId]);
    expect((await listed()).seqs).toEqual([]);
    await writer().write(
      ledgerId,
      all.map((seq) => ({ seq, projections: [underS] })),
    );
    expect(await listed()).toEqual({ seqs: all, missing: [] });
  });

  test('a changed row of a scope and a newer value are not overwritten', async () => {
    const { ledgerId } = await ledgerOf(3);
    const row = [ledgerId, 0, 's', 0];
    await run("UPDATE ledger_event SET row = '1 2' WHERE ledger_id = ? AND bucket = ? AND scope = ? AND seq = ?", row);
    const cell = (value: string): Projection => ({ kind: 'cell', key: `cell of ${ledgerId}`, value });
    await writer().write(ledgerId, [{ seq: 2, projections: [cell('newer')] }]);
    await writer().write(ledgerId, [{ seq: 0, projections: [underS, cell('older')] }]);
    const [found] = await run(
      'SELECT row FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = ? AND seq = ?',
      row,
    );
    expect(found?.row).toBe('1 2');
    expect(await stores.ledgers.cell(`cell of ${ledgerId}`)).toEqual({ version: 2, value: 'newer' });
  });
});
