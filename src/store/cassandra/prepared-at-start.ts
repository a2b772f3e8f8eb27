import type cassandra from 'cassandra-driver';

const texts = new Set<string>();

/** Texts that were named below. */
export function textsPreparedAtStart(): readonly string[] {
  return [...texts];
}

/**
 * Names a statement that a node needs for the first calls it serves; it has at least one parameter. Where its text was not prepared before,
 * a call waits for one more answer of Cassandra, and an append needs twenty statements, one after the other.
 */
export function preparedAtStart(cql: string): string {
  texts.add(cql);
  return cql;
}

/**
 * Has Cassandra prepare those statements, and executes none: the driver prepares a statement before it finds that a parameter is missing.
 * Never throws: what cannot be prepared now is when it is first sent, and says by then what is wrong.
 */
export async function prepareAtStart(client: Pick<cassandra.Client, 'execute'>): Promise<void> {
  const withoutParameters = {};
  await Promise.allSettled([...texts].map((cql) => client.execute(cql, withoutParameters, { prepare: true })));
}
