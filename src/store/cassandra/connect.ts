import cassandra from 'cassandra-driver';
import { type ErrorCode, LedgerError } from '../../domain/errors.ts';
import { StartError } from '../start-error.ts';
import { isProgrammerError } from './driver-session.ts';
import type { CassandraSettings } from './settings.ts';

/** Cassandra's own limit of a read is 5 s; what it queues behind where it has just started may take as long. */
const lookMaxMs = 10_000;
/** What a start may be refused with by a store that is slow. */
const passing: ReadonlySet<ErrorCode> = new Set(['unavailable', 'overloaded', 'outcome_unknown']);

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

/**
 * What Cassandra holds about itself, in rows. StartError where it does not tell: it has just started, or is too busy, or does not let the
 * login see it.
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

/** A store that may do later what it did not do now, as a StartError; any other error as it is. */
export function orNotAnswering(error: unknown): unknown {
  const isPassing = error instanceof LedgerError && passing.has(error.code);
  return isPassing ? notAnswering(error.cause ?? error) : error;
}

/** What Cassandra has answered with: no further try changes it. */
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

/** The driver's own words say "see innerErrors"; these are those. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = 'innerErrors' in error ? Object.values(error.innerErrors as Record<string, unknown>) : [];
  const [first] = inner;
  return first instanceof Error ? first.message : error.message;
}
