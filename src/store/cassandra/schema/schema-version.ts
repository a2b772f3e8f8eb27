import { StartError } from '../../../runtime/start-error.ts';
import type { ClusterFacts } from '../session/facts.ts';
import { schemaFact, schemaVersion } from './schema.ts';

/** Returns the version of the schema that was applied last. null if none was applied. */
export async function storedVersion(facts: ClusterFacts): Promise<number | null> {
  const version = await facts.get(schemaFact.name).catch((error: unknown) => {
    if (error instanceof Error && /fact/.test(error.message) && /not exist|unconfigured/.test(error.message))
      return null;
    throw error;
  });
  return version === null ? null : Number(version);
}

/** The error if a newer version of the service has applied its schema: the schema version never goes back. */
export function newerSchema(keyspace: string, version: number): StartError {
  return new StartError(
    `Keyspace ${keyspace} has schema version ${version}, this version of the service knows ${schemaVersion}: a newer one was here; start that one, or restore the backup from before.`,
  );
}
