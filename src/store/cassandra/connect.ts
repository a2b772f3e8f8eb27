import type cassandra from 'cassandra-driver';
import { StartError } from '../start-error.ts';
import type { CassandraSettings } from './settings.ts';

/** Connects, or throws a StartError that says what to look at. A client that could not connect is shut down. */
export async function connect(client: cassandra.Client, settings: CassandraSettings): Promise<void> {
  try {
    await client.connect();
  } catch (error) {
    await client.shutdown().catch(() => {});
    const reason = reasonOf(error);
    if (/keyspace .* does not exist/i.test(reason))
      throw new StartError(`Cassandra has no keyspace ${settings.keyspace}: run \`ledger-trust schema apply\`.`, error);
    throw new StartError(
      `Cassandra cannot be reached at ${settings.contactPoints.join(', ')}: check CASSANDRA_CONTACT_POINTS, CASSANDRA_DATA_CENTER and the login (${reason}).`,
      error,
    );
  }
}

/** The driver's own words say "see innerErrors"; these are those. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = 'innerErrors' in error ? Object.values(error.innerErrors as Record<string, unknown>) : [];
  const [first] = inner;
  return first instanceof Error ? first.message : error.message;
}
