import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sha256Hex } from '../../src/domain/keys/hash.ts';
import { cassandraCacheDir } from './cassandra-jars.ts';

type Run = (command: string, args: readonly string[]) => Promise<{ readonly stdout: string; readonly stderr: string }>;

const runMaxMs = 60_000;
const runCommand: Run = (command, args) => promisify(execFile)(command, args, { timeout: runMaxMs });

/** Java's class data sharing archive of Cassandra's classes. A start with it takes two thirds of the time. */
export interface ClassArchive {
  /** Arguments of Java: to use the archive, or to be able to write one. */
  readonly args: readonly string[];
  /**
   * Has a running process write the archive if there is none yet. The process does not answer for some 4 s. Does
   * nothing if Java is older than 17 or has no `jcmd`. Never rejects.
   */
  keep(pid: number): Promise<void>;
}

/** Returns the archive of a class path. Java ignores an archive of another Java or other jars. */
export async function classArchive(
  classpath: string,
  dir: string = cassandraCacheDir,
  run: Run = runCommand,
): Promise<ClassArchive> {
  // If there is no Java, the start of Cassandra reports it.
  const version = await run('java', ['-version']).catch(() => null);
  const name = sha256Hex(`${version?.stderr}\n${classpath}`).slice(0, 16);
  const file = join(dir, `classes-${name}.jsa`);
  if (existsSync(file)) return { args: [`-XX:SharedArchiveFile=${file}`], keep: async () => {} };
  return {
    args: ['-XX:+IgnoreUnrecognizedVMOptions', '-XX:+RecordDynamicDumpInfo'],
    async keep(pid) {
      const draft = `${file}.${process.pid}`;
      try {
        await mkdir(dir, { recursive: true });
        await run('jcmd', [String(pid), 'VM.cds', 'dynamic_dump', draft]);
        if (existsSync(draft)) await rename(draft, file);
      } catch {
        await rm(draft, { force: true }).catch(() => {});
      }
    },
  };
}
