import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { StartError } from '../../src/store/start-error.ts';

/** SIGTERM, and SIGKILL for what is still there after this long. */
const termGraceDefaultMs = 8_000;
const WATCHDOG = 'read -r line; kill -TERM "$1" 2>/dev/null; sleep 8; kill -KILL "$1" 2>/dev/null';

/** A server that runs as a child of this process, and never longer than this process. */
export interface ServerProcess {
  readonly pid: number;
  /** When it has ended, by itself or not: its exit code, or null where a signal ended it. */
  readonly ended: Promise<number | null>;
  hasEnded(): boolean;
  /** SIGSTOP: it answers nothing and keeps all it has, until `resume`. */
  pause(): void;
  resume(): void;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
  /** SIGTERM, after its grace SIGKILL, and wait until it is gone. */
  stop(): Promise<void>;
}

export interface ServerProcessOptions {
  /** Default: that of this process. */
  readonly env?: { readonly [name: string]: string | undefined };
  /** Default: 8 s. */
  readonly termGraceMs?: number;
}

/**
 * Starts a server whose output goes to `logFile`. A small shell beside it ends it should this process be killed: it
 * waits on a pipe that only this process holds. Both stand in sessions of their own, so that Ctrl-C at a terminal reaches
 * this process alone, which then stops its servers in their order.
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
  // The child has its own.
  closeSync(log);
  const pid = await startedPid(child);
  const watchdog = spawn('sh', ['-c', WATCHDOG, 'sh', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watchdog.unref();
  // A watchdog that is gone already cannot be told anything; nothing else is ever written to it.
  watchdog.stdin.on('error', () => {});
  let over = false;
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => {
      over = true;
      // Before its pipe closes: by then the pid may belong to somebody else.
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
