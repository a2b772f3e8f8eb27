import type cassandra from 'cassandra-driver';

const waitMaxMs = 3_000;

const texts = new Set<string>();

export function textsPreparedAtStart(): readonly string[] {
  return [...texts];
}

/**
 * Registers a statement that the first calls of a node need, so that it is prepared at the start, and returns it. It
 * must have a parameter. A statement that is not prepared costs its first call one more round trip.
 */
export function preparedAtStart(cql: string): string {
  texts.add(cql);
  return cql;
}

/**
 * Prepares those statements and executes none: the driver prepares a statement before it notices that a parameter is
 * missing. Never throws. Waits at most 3 s: a statement that is not prepared then fails or is prepared when it is first
 * sent.
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
