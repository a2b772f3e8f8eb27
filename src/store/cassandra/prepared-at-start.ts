import type cassandra from 'cassandra-driver';

const waitMaxMs = 3_000;

const texts = new Set<string>();

/** Texts that were named below. */
export function textsPreparedAtStart(): readonly string[] {
  return [...texts];
}

/**
 * Names a statement that a node needs for the first calls it serves; it has at least one parameter. Where its text was not prepared before,
 * a call waits for one more answer of Cassandra, and a ledger's first append on a node sends some twenty statements, most of them one
 * after the other.
 */
export function preparedAtStart(cql: string): string {
  texts.add(cql);
  return cql;
}

/**
 * Has Cassandra prepare those statements, and executes none: the driver prepares a statement before it finds that a parameter is missing.
 * Never throws, and waits for a slow Cassandra no longer than that is worth: what is not prepared by then is when it is first sent, and
 * says by then what is wrong.
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
