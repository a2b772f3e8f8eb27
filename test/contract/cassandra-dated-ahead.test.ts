import { beforeAll, expect, test } from 'vitest';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import { OutcomeUnknown } from '../../src/store/ledger-store.ts';
import { UnreadableRecord } from '../../src/store/unreadable-record.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { entriesAfter, entriesFor, newLedgerId } from '../support/store-entries.ts';
import { execute, suiteKeyspace } from './cassandra-factory.ts';

const bucketEvents = 8;
/** Microseconds. */
const nextYear = (Date.now() + 365 * 86_400_000) * 1_000;
const inBucket0 = 'WHERE ledger_id = ? AND bucket = 0';

await describeOnCassandra('Cells and deletions that somebody dated ahead', (address) => {
  const { settings, open } = suiteKeyspace(address, bucketEvents);
  let stores: CassandraStores;
  let other: CassandraStores;
  beforeAll(async () => {
    [stores, other] = [await open(), await open()];
  });
  const run = (cql: string, ...params: readonly unknown[]) => execute(settings, cql, params);

  /** A ledger with three events in one batch, and the claim that they were written under. */
  async function ledger() {
    const claim = await stores.ledgers.claim(newLedgerId());
    await stores.ledgers.append(claim, entriesFor(claim, 3));
    const { ledgerId } = claim;
    return { ledgerId, claim, head: await stores.ledgers.head(ledgerId) };
  }
  /** Writes static columns of bucket 0 again, as they stand. */
  async function writeAgain(ledgerId: string, using: string, ...columns: readonly string[]) {
    const [row] = await run(`SELECT ${columns.join(', ')} FROM ledger_event ${inBucket0} LIMIT 1`, ledgerId);
    const set = columns.map((column) => `${column} = ?`).join(', ');
    const values = columns.map((column) => row?.[column]);
    await run(`UPDATE ledger_event ${using} SET ${set} ${inBucket0}`, ...values, ledgerId);
  }
  const causeOf = (refusal: Promise<unknown>) =>
    refusal.then(
      () => 'taken',
      (error: unknown) => {
        const damage = error instanceof OutcomeUnknown ? error.cause : error;
        return damage instanceof UnreadableRecord ? String(damage.cause) : damage;
      },
    );

  test.each([[['head_seq', 'head_hash']], [['head_hash']], [['pending']], [['fence']], [['head_seq', 'fence']]])(
    'refuse a claim of a ledger with such cells in %j',
    async (columns) => {
      const { ledgerId } = await ledger();
      await writeAgain(ledgerId, `USING TIMESTAMP ${nextYear}`, ...columns);
      expect(await causeOf(other.ledgers.claim(ledgerId))).toMatch(
        /^Error: .*dated ahead.*Cells that are dated wrongly/,
      );
      expect(await causeOf(stores.ledgers.claim(ledgerId))).toContain('bucket 0');
    },
  );

  test('at an ordinary time refuse no claim, as when an operator has restored a head', async () => {
    const { ledgerId, head } = await ledger();
    await writeAgain(ledgerId, '', 'head_seq', 'head_hash', 'pending');
    const claim = await other.ledgers.claim(ledgerId);
    await other.ledgers.append(claim, entriesAfter(head, 2));
    expect((await stores.ledgers.head(ledgerId))?.seq).toBe(4);
  });

  test.each([
    [
      'a deletion of seqs to come',
      `DELETE FROM ledger_event USING TIMESTAMP ${nextYear} ${inBucket0} AND scope = '' AND seq > 2`,
    ],
    [
      'a row in their place',
      `INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, 0, '', 4, 'x') USING TIMESTAMP ${nextYear}`,
    ],
  ])('let nobody acknowledge the first batch after a claim: %s', async (_, cql) => {
    const { ledgerId, head } = await ledger();
    await run(cql, ledgerId);
    const claim = await other.ledgers.claim(ledgerId);
    expect(await causeOf(other.ledgers.append(claim, entriesAfter(head, 2)))).toContain('a row of bucket 0');
  });

  test('let nobody acknowledge the first batch of a bucket', async () => {
    const { ledgerId, claim, head } = await ledger();
    await run(`DELETE FROM ledger_event USING TIMESTAMP ${nextYear} WHERE ledger_id = ? AND bucket = 1`, ledgerId);
    await stores.ledgers.append(claim, entriesAfter(head, 5));
    const full = await stores.ledgers.head(ledgerId);
    expect(await causeOf(stores.ledgers.append(claim, entriesAfter(full, 1)))).toContain('bucket 1');
    expect(await causeOf(stores.ledgers.claim(ledgerId))).toContain('fence of bucket 1');
  });

  test.each(['version, value, places', 'version', 'value', 'places'])(
    'let nobody acknowledge a change of a record: %s',
    async (columns) => {
      const { records } = stores;
      const place = { kind: 'k', id: `record of ${columns}` };
      const lookups = [{ name: 'n', value: 'v', order: 'o' }];
      const put = await records.put({ ...place, replaces: 'absent', value: '{"revoked":false}', lookups });
      if (!put.ok) expect.unreachable();
      const where = 'WHERE kind = ? AND id = ?';
      const [row] = await run(`SELECT ${columns} FROM record ${where}`, place.kind, place.id);
      const set = columns.split(', ').map((column) => `${column} = ?`);
      const values = columns.split(', ').map((column) => row?.[column]);
      const again = `UPDATE record USING TIMESTAMP ${nextYear} SET ${set.join(', ')} ${where}`;
      await run(again, ...values, place.kind, place.id);
      const revoked = { ...place, replaces: put.version, value: '{"revoked":true}', lookups: [] };
      expect(await causeOf(records.put(revoked))).toMatch(/^Error: .*dated ahead/);
    },
  );

  test('let nobody acknowledge the removal of a record', async () => {
    const place = { kind: 'k', id: 'removed' };
    const put = await stores.records.put({ ...place, replaces: 'absent', value: '{}', lookups: [] });
    if (!put.ok) expect.unreachable();
    await run(`UPDATE record USING TIMESTAMP ${nextYear} SET value = '{}' WHERE kind = 'k' AND id = 'removed'`);
    expect(await causeOf(stores.records.remove('k', 'removed', put.version))).toMatch(/^Error: .*dated ahead/);
  });
});
