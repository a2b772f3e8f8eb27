import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sha256Hex } from '../../src/domain/hash.ts';
import { cassandraCacheDir } from './cassandra-jars.ts';

type Run = (command: string, args: readonly string[]) => Promise<{ readonly stdout: string; readonly stderr: string }>;

const runMaxMs = 60_000;
const runCommand: Run = (command, args) => promisify(execFile)(command, args, { timeout: runMaxMs });

/** What Java makes of Cassandra's classes when it loads them, kept for the next start, which takes two thirds of the time with it. */
export interface ClassArchive {
  /** Of Java: to use what is kept, or to be ready to keep it. */
  readonly args: readonly string[];
  /**
   * Has a process that was started with `args` and serves keep its classes, if none are kept yet: it answers nothing for some 4 s meanwhile. In vain
   * where Java is older than 17 or has no `jcmd`.
   */
  keep(pid: number): Promise<void>;
}

/** The archive of a class path. Java takes it for the same Java and the same jars alone, and goes on without it where it does not. */
export async function classArchive(
  classpath: string,
  dir: string = cassandraCacheDir,
  run: Run = runCommand,
): Promise<ClassArchive> {
  // Where there is no Java the start says so.
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
