import { randomBytes } from 'node:crypto';
import cassandra from 'cassandra-driver';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { keyText } from '../../src/store/cassandra/keys.ts';
import { type CassandraStores, openCassandra } from '../../src/store/cassandra/open.ts';
import { applySchema } from '../../src/store/cassandra/schema/apply-schema.ts';
import type { CqlSession } from '../../src/store/cassandra/session/session.ts';
import { type CassandraSettings, cassandraSettings } from '../../src/store/cassandra/session/settings.ts';
import type { CassandraAddress } from '../support/backends/backend.ts';
import { faultySession } from '../support/cassandra-faults.ts';
import type { StoreFactory, TestClock } from './stores.ts';

/** Settings for a keyspace of this suite alone, not made yet. */
export function newKeyspace({ contactPoints, localDataCenter, allow }: CassandraAddress): CassandraSettings {
  return cassandraSettings({
    CASSANDRA_CONTACT_POINTS: contactPoints.join(','),
    CASSANDRA_DATA_CENTER: localDataCenter,
    CASSANDRA_KEYSPACE: `test_${randomBytes(6).toString('hex')}`,
    CASSANDRA_ALLOW: allow.join(','),
  });
}

/** The environment of a command for a keyspace. */
export function environmentOf(settings: CassandraSettings): Readonly<Record<string, string>> {
  return {
    CASSANDRA_CONTACT_POINTS: settings.contactPoints.join(','),
    CASSANDRA_DATA_CENTER: settings.localDataCenter,
    CASSANDRA_KEYSPACE: settings.keyspace,
    CASSANDRA_ALLOW: [...settings.allow].join(','),
  };
}

/** Makes the keyspace with one replica. */
export function makeKeyspace(settings: CassandraSettings, bucketEvents?: number): Promise<string> {
  return applySchema(settings, {
    replication: new Map([[settings.localDataCenter, 1]]),
    shardCount: 4,
    random: randomBytes,
    ...(bucketEvents === undefined ? {} : { bucketEvents }),
  });
}

/** A plain client, for reads and changes that the stores do not know of. */
export async function withClient<T>(
  settings: CassandraSettings,
  work: (client: cassandra.Client) => Promise<T>,
): Promise<T> {
  const { contactPoints, localDataCenter, keyspace } = settings;
  const client = new cassandra.Client({ contactPoints: [...contactPoints], localDataCenter, keyspace });
  try {
    return await work(client);
  } finally {
    await client.shutdown();
  }
}

/** Executes one statement with a plain client. Returns its rows. */
export function execute(settings: CassandraSettings, cql: string, params: readonly unknown[] = []) {
  const options = { prepare: params.length > 0, readTimeout: 30_000 };
  return withClient(settings, async (client) => (await client.execute(cql, [...params], options)).rows);
}

/**
 * Drops a keyspace from a Cassandra that goes on after the run. One that runs for these tests ends with them, and would
 * write out all tables of all suites for each keyspace that is dropped, which is a third of all that it does.
 */
export async function leaveKeyspace(settings: CassandraSettings): Promise<void> {
  if ((process.env.CASSANDRA_CONTACT_POINTS ?? '') === '') return;
  await execute({ ...settings, keyspace: 'system' }, `DROP KEYSPACE IF EXISTS ${settings.keyspace}`);
}

export function openStores(
  settings: CassandraSettings,
  now: () => number,
  around?: (session: CqlSession) => CqlSession,
): Promise<CassandraStores> {
  return openCassandra({ settings, now, random: randomBytes, ...(around === undefined ? {} : { around }) });
}

/** Settings for a keyspace that the suite which asks for them makes, and leaves at its end. */
export function suiteSettings(address: CassandraAddress): CassandraSettings {
  const settings = newKeyspace(address);
  afterAll(() => leaveKeyspace(settings));
  return settings;
}

/** A keyspace for the suite that asks for it; `open` opens stores in it, which are closed with the suite. */
export function suiteKeyspace(address: CassandraAddress, bucketEvents?: number) {
  const settings = suiteSettings(address);
  const opened: CassandraStores[] = [];
  beforeAll(async () => void (await makeKeyspace(settings, bucketEvents)));
  afterAll(async () => {
    for (const stores of opened) await stores[Symbol.asyncDispose]();
  });
  const open = async (around?: (session: CqlSession) => CqlSession) => {
    const stores = await openStores(settings, Date.now, around);
    opened.push(stores);
    return stores;
  };
  /** A node for the running test, whose session fails on demand. */
  const faultyNode = async () => {
    const faults = faultySession();
    const stores = await openStores(settings, Date.now, faults.around);
    onTestFinished(() => stores[Symbol.asyncDispose]());
    return { faults, ledgers: stores.ledgers, records: stores.records };
  };
  return { settings, open, faultyNode };
}

export function cassandraFactory(address: CassandraAddress): StoreFactory<CassandraStores> {
  const settings = newKeyspace(address);
  let clock: TestClock = { nowMs: 0 };
  let opened: CassandraStores | null = null;
  const close = async () => {
    await opened?.[Symbol.asyncDispose]();
    opened = null;
  };
  const open = async () => {
    opened = await openStores(settings, () => clock.nowMs);
    return opened;
  };
  return {
    async open(given) {
      clock = given;
      await makeKeyspace(settings);
      return open();
    },
    async reopen() {
      await close();
      return open();
    },
    async loseRow(ledgerId, seq) {
      await close();
      const cql = "DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = '' AND seq = ?";
      await execute(settings, cql, [keyText(ledgerId), seq]);
      return open();
    },
    async close() {
      await close();
      await leaveKeyspace(settings);
    },
  };
}
