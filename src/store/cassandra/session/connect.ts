import cassandra from 'cassandra-driver';
import { type ErrorCode, LedgerError } from '../../../domain/errors.ts';
import { StartError } from '../../../runtime/start-error.ts';
import { isProgrammerError } from './health.ts';
import type { CassandraSettings } from './settings.ts';

/** Cassandra's own limit for a read is 5 s. On a node that has just started a read may be queued for as long again. */
const lookMaxMs = 10_000;
/** Errors by which a slow store may refuse a start, and which pass. */
const passing: ReadonlySet<ErrorCode> = new Set(['unavailable', 'overloaded', 'outcome_unknown']);

/** If it cannot connect, shuts the client down and throws StartError. */
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

/**
 * Queries Cassandra's system tables. Throws StartError if there is no answer (Cassandra has just started or is too
 * busy) or if the login may not read them.
 */
export async function look(
  client: cassandra.Client,
  query: string,
  params: readonly string[] = [],
  options: cassandra.QueryOptions = {},
): Promise<cassandra.types.Row[]> {
  try {
    return (await client.execute(query, [...params], { readTimeout: lookMaxMs, ...options })).rows;
  } catch (error) {
    if (!isRefused(error)) throw notAnswering(error);
    throw new StartError(
      `Cassandra does not say how it is set (${reasonOf(error)}): let the login read the keyspaces system, system_schema and system_views.`,
      error,
    );
  }
}

/** An error that passes, such as `unavailable`, as a StartError. Any other error unchanged. */
export function orNotAnswering(error: unknown): unknown {
  const isPassing = error instanceof LedgerError && passing.has(error.code);
  return isPassing ? notAnswering(error.cause ?? error) : error;
}

/** Whether Cassandra answered with an error that no retry changes. */
export function isRefused(error: unknown): boolean {
  if (isProgrammerError(error)) return true;
  const { unauthorized, badCredentials, alreadyExists } = cassandra.types.responseErrorCodes;
  return (
    error instanceof cassandra.errors.ResponseError &&
    [unauthorized, badCredentials, alreadyExists].includes(error.code)
  );
}

function notAnswering(error: unknown): StartError {
  return new StartError(
    `Cassandra was reached, but did not answer (${reasonOf(error)}): see whether its nodes have the processor and memory they need, then try again.`,
    error,
  );
}

/** The message of the first inner error: the driver's own message only says "see innerErrors". */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = 'innerErrors' in error ? Object.values(error.innerErrors as Record<string, unknown>) : [];
  const [first] = inner;
  return first instanceof Error ? first.message : error.message;
}
