import { randomBytes } from 'node:crypto';
import cassandra from 'cassandra-driver';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { uuidV7 } from '../../src/domain/values/uuid.ts';
import { type CassandraStores, openCassandra } from '../../src/store/cassandra/open.ts';
import { prepareAtStart, textsPreparedAtStart } from '../../src/store/cassandra/session/prepared-at-start.ts';
import type { CqlSession, Statement } from '../../src/store/cassandra/session/session.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { entriesFor, newLedgerId } from '../support/store-entries.ts';
import { suiteKeyspace, withClient } from './cassandra-factory.ts';

await describeOnCassandra('Statements that Cassandra has prepared before a node serves', (address) => {
  const { settings, open } = suiteKeyspace(address);
  const sent = new Set<string>();
  let stores: CassandraStores;
  beforeAll(async () => {
    stores = await open((session) => recording(session, sent));
  });

  test('cover a signed append with its reads', async () => {
    const { ledgers, records, access } = stores;
    sent.clear();
    await records.get('api_key', 'k');
    const lookup = { name: 'n', value: 'v' };
    await records.find('actor_key', lookup, { limit: 1 });
    const lookups = [{ ...lookup, order: '1' }];
    await records.put({
      kind: 'idempotency',
      id: 'i',
      replaces: 'absent',
      value: '{}',
      lookups,
      expiresAt: Date.now(),
    });
    const claim = await ledgers.claim(newLedgerId());
    const { ledgerId } = claim;
    await ledgers.snapshot(ledgerId);
    await ledgers.findCommands(ledgerId, [{ id: 'c', permanent: false }]);
    const entries = entriesFor(claim, 1, {
      projections: () => [
        { kind: 'scope', scope: 's' },
        { kind: 'command', command: { id: 'c', fingerprint: 'f', permanent: false } },
        { kind: 'command', command: { id: 'd', fingerprint: 'f', permanent: true } },
        { kind: 'cell', key: `k ${ledgerId}`, value: 'v' },
        { kind: 'line', list: `l ${ledgerId}`, order: '1', value: 'v' },
      ],
    });
    await ledgers.append(claim, entries);
    await ledgers.claim(ledgerId);
    await ledgers.read(ledgerId, 0, 1);
    await ledgers.readScope(ledgerId, 's', { limit: 1 });
    await ledgers.readScope(ledgerId, 's', { limit: 1, descending: true });
    await ledgers.cell(`k ${ledgerId}`);
    await ledgers.saveSnapshot(ledgerId, { foldVersion: 1, seq: 0, hash: '', state: '{}' });
    const call = {
      actorId: 'a',
      apiKeyId: null,
      ledgerId,
      method: 'POST',
      path: '/',
      responseStatus: 201,
      requestId: 'r',
    };
    await access.append([{ id: uuidV7(Date.now(), randomBytes(10)), ...call }]);
    const late = [...sent].filter((cql) => !textsPreparedAtStart().includes(cql));
    expect(late).toEqual([]);
    expect(sent.size).toBeGreaterThan(25);
  });

  test.each([
    ['all of them by a node', true, () => textsPreparedAtStart().length],
    ['none by a command', false, () => 0],
  ])('are prepared before calls are served: %s', async (_, isServing, count) => {
    const execute = vi.spyOn(cassandra.Client.prototype, 'execute');
    onTestFinished(() => void execute.mockRestore());
    const serving = await openCassandra({ settings, now: Date.now, random: randomBytes, isServing });
    const prepared = execute.mock.calls.filter(([cql]) => textsPreparedAtStart().includes(cql));
    expect(prepared).toHaveLength(count());
    await serving[Symbol.asyncDispose]();
  });

  test('are not executed when they are prepared', async () => {
    await withClient(settings, async (client) => {
      const ended = vi.spyOn(client, 'execute');
      await prepareAtStart(client);
      const texts = textsPreparedAtStart();
      expect(texts.length).toBeGreaterThan(25);
      const outcomes = await Promise.allSettled(ended.mock.results.map(({ value }) => value));
      expect(outcomes).toHaveLength(texts.length);
      for (const outcome of outcomes)
        expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(cassandra.errors.ArgumentError) });
      // The driver's own book of what it has prepared (lib/metadata).
      const book = client.metadata as unknown as {
        getPreparedInfo(keyspace: string, cql: string): { queryId?: Buffer };
      };
      const missing = texts.filter((cql) => book.getPreparedInfo(settings.keyspace, cql).queryId === undefined);
      expect(missing).toEqual([]);
    });
  });
});

describe('a Cassandra that prepares nothing', () => {
  test('does not stop the start of a node', async () => {
    const execute = vi.fn(() => Promise.reject(new Error('gone')));
    await prepareAtStart({ execute });
    expect(execute).toHaveBeenCalledTimes(textsPreparedAtStart().length);
  });

  test('delays a start by three seconds at most if it does not answer', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    let ended = false;
    const preparing = prepareAtStart({ execute: () => new Promise(() => {}) }).then(() => {
      ended = true;
    });
    await vi.advanceTimersByTimeAsync(2_999);
    expect(ended).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await preparing;
  });
});

function recording(session: CqlSession, texts: Set<string>): CqlSession {
  const noted = (statements: readonly Statement[]) => {
    for (const { cql } of statements) texts.add(cql);
    return statements;
  };
  return {
    read: (statement, options) => session.read(noted([statement])[0] ?? statement, options),
    write: (statements) => session.write(noted(statements)),
    decide: (statements) => session.decide(noted(statements)),
  };
}
