import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { StartError } from '../../src/runtime/start-error.ts';

const termGraceDefaultMs = 8_000;
const WATCHDOG = 'read -r line; kill -TERM "$1" 2>/dev/null; sleep 8; kill -KILL "$1" 2>/dev/null';

/** A server that runs as a child of this process, and never longer than this process. */
export interface ServerProcess {
  readonly pid: number;
  /** Resolves when the process has ended for any reason: with its exit code, or null if a signal ended it. */
  readonly ended: Promise<number | null>;
  hasEnded(): boolean;
  /** The last line of its output, or '' if there is none. */
  lastLine(): Promise<string>;
  /** Sends SIGSTOP. */
  pause(): void;
  resume(): void;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
  /** Sends SIGTERM, and after the grace period SIGKILL. Resolves when the process has ended. */
  stop(): Promise<void>;
}

interface ServerProcessOptions {
  /** Default: the environment of this process. */
  readonly env?: { readonly [name: string]: string | undefined };
  /** Time between SIGTERM and SIGKILL. Default: 8 s. */
  readonly termGraceMs?: number;
}

/**
 * Starts a server whose output goes to `logFile`. A small shell, which waits on a pipe that only this process holds,
 * ends the server if this process is killed. Both have sessions of their own, so that Ctrl-C at a terminal reaches this
 * process only. Throws StartError if the command cannot be started.
 */
export async function startServerProcess(
  command: string,
  args: readonly string[],
  logFile: string,
  { env, termGraceMs = termGraceDefaultMs }: ServerProcessOptions = {},
): Promise<ServerProcess> {
  const log = openSync(logFile, 'a');
  const child = spawn(command, args, {
    stdio: ['ignore', log, log],
    detached: true,
    ...(env === undefined ? {} : { env }),
  });
  // The child has its own descriptor of the file.
  closeSync(log);
  const pid = await startedPid(child);
  const watchdog = spawn('sh', ['-c', WATCHDOG, 'sh', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watchdog.unref();
  // The pipe fails if the watchdog is gone, which does not matter.
  watchdog.stdin.on('error', () => {});
  let over = false;
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => {
      over = true;
      // The watchdog must end before its pipe closes: otherwise it kills this pid, which may be another process then.
      watchdog.kill('SIGKILL');
      resolve(code);
    });
  });
  const signal = (name: NodeJS.Signals) => {
    if (!over) child.kill(name);
  };
  return {
    pid,
    ended,
    hasEnded: () => over,
    async lastLine() {
      const text = await readFile(logFile, 'utf8').catch(() => '');
      return text.trim().split('\n').at(-1) ?? '';
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    async kill() {
      signal('SIGKILL');
      await ended;
    },
    async stop() {
      signal('SIGCONT');
      signal('SIGTERM');
      const late = setTimeout(() => signal('SIGKILL'), termGraceMs);
      await ended;
      clearTimeout(late);
    },
  };
}

function startedPid(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(notStarted(child.spawnfile, error)));
    child.once('spawn', () => {
      child.removeAllListeners('error');
      child.on('error', () => {});
      if (child.pid !== undefined) resolve(child.pid);
    });
  });
}

function notStarted(command: string, error: Error): StartError {
  const reason = 'code' in error ? String(error.code) : error.message;
  return new StartError(`${command} cannot be started (${reason}): install it and have it on the PATH.`, error);
}
