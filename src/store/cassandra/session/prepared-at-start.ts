import type cassandra from 'cassandra-driver';

const waitMaxMs = 3_000;

const texts = new Set<string>();

/** Returns the texts of all statements that were passed to preparedAtStart. */
export function textsPreparedAtStart(): readonly string[] {
  return [...texts];
}

/**
 * Registers a statement that the first calls of a node need, so that it is prepared at the start. Returns its text. The
 * statement must have at least one parameter. A statement that is not prepared costs its first call one more round
 * trip, and the first append to a ledger sends about twenty statements, most of them one after the other.
 */
export function preparedAtStart(cql: string): string {
  texts.add(cql);
  return cql;
}

/**
 * Prepares those statements and executes none: it sends them without parameters, and the driver prepares a statement
 * before it notices that a parameter is missing. Never throws. Waits at most 3 s: other statements are prepared when
 * they are first sent, and fail then if something is wrong.
 */
export async function prepareAtStart(client: Pick<cassandra.Client, 'execute'>): Promise<void> {
  const withoutParameters = {};
  const prepared = Promise.allSettled(
    [...texts].map((cql) => client.execute(cql, withoutParameters, { prepare: true })),
  );
  const { promise: enough, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, waitMaxMs);
  await Promise.race([prepared, enough]);
  clearTimeout(timer);
}
