import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { StartError } from '../../src/runtime/start-error.ts';

const cassandraVersion = '5.0.9';
const mavenMaxMs = 300_000;
/** Keeps the class path and the class archive between starts. */
export const cassandraCacheDir = join(homedir(), '.cache', 'ledger-trust', `cassandra-${cassandraVersion}`);
const run = promisify(execFile);

const pom = `<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>cassandra-classpath</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>${cassandraVersion}</version>
    </dependency>
  </dependencies>
</project>
`;

/**
 * Returns the class path of Cassandra's own jars, which Maven resolves on first use (67 MB, some 10 s). Throws
 * StartError if there is no Maven, else the error of the failed Maven run.
 */
export async function cassandraClasspath(): Promise<string> {
  const file = join(cassandraCacheDir, 'classpath');
  const known = existsSync(file) ? (await readFile(file, 'utf8')).trim() : '';
  if (known !== '' && known.split(delimiter).every((jar) => existsSync(jar))) return known;
  await mkdir(cassandraCacheDir, { recursive: true });
  const pomFile = join(cassandraCacheDir, 'pom.xml');
  const draft = `${file}.${process.pid}`;
  await writeFile(pomFile, pom);
  const args = ['-B', '-q', '-f', pomFile, 'dependency:build-classpath', `-Dmdep.outputFile=${draft}`];
  await run('mvn', [...args, '-DincludeScope=runtime'], { timeout: mavenMaxMs }).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      throw new StartError('Install Maven and a JDK: Cassandra is fetched by mvn, which is not on the PATH.', error);
    throw error;
  });
  await rename(draft, file);
  return (await readFile(file, 'utf8')).trim();
}
