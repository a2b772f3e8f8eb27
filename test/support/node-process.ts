import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { sameRequestMs } from '../../src/cli/terminal/stop-signals.ts';
import { compileCache } from './compile-cache.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
/** The program of a node of a cluster. */
export const clusterMain = fileURLToPath(new URL('../../cluster/main.ts', import.meta.url));

interface ProcessEnd {
  readonly code: number | null;
  readonly stderr: string;
  readonly stdout: string;
}

/** `node src/main.ts` as an operator runs it, in a process of its own. */
export interface NodeProcess extends AsyncDisposable {
  readonly base: string;
  readonly grpcAddress: string;
  readonly opsBase: string;
  readonly child: ChildProcess;
  /** What it has said so far. */
  said(): string;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
  /** SIGTERM, and how it ended. */
  terminate(): Promise<ProcessEnd>;
  readonly ended: Promise<ProcessEnd>;
}

export type ProcessEnvironment = Readonly<Record<string, string>>;

const anyPorts = { HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', OPS_PORT: '0', LOG_LEVEL: 'warn' };

/** No test may leave a process behind, however it ends. */
const running = new Set<() => void>();
process.once('exit', () => {
  for (const kill of running) kill();
});

/** `under` is a command to run it with, such as strace and its options. */
function begin(env: ProcessEnvironment, main: string, args: readonly string[], under: readonly string[] = []) {
  const { PATH = '', HOME = '' } = process.env;
  // A tracer does not pass signals on, so it and the node are a process group of their own.
  const isGroup = under.length > 0;
  const [command = '', ...rest] = [...under, process.execPath, main, ...args];
  const child = spawn(command, rest, {
    env: { PATH, HOME, ...compileCache, ...anyPorts, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: isGroup,
  });
  const signal = (name: 'SIGKILL' | 'SIGTERM'): void => {
    if (!isGroup) child.kill(name);
    else if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, name);
  };
  const kill = () => signal('SIGKILL');
  running.add(kill);
  child.once('close', () => running.delete(kill));
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data: Buffer) => {
    stdout += data.toString();
  });
  child.stderr.on('data', (data: Buffer) => {
    stderr += data.toString();
  });
  const ended = new Promise<ProcessEnd>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { child, ended, signal, said: () => stdout + stderr };
}

/** Milliseconds after which a further signal is a request of its own, also to a busy node. */
export const furtherSignalMs = sameRequestMs + 500;

/** Longer than anything that is run to its end may take. */
const endMaxMs = 30_000;

/** How a program ends, by itself or killed when its time is up. */
async function endOf({ ended, signal }: ReturnType<typeof begin>): Promise<ProcessEnd> {
  const late = setTimeout(() => signal('SIGKILL'), endMaxMs);
  const end = await ended;
  clearTimeout(late);
  return end;
}

/** Runs a program of the project to its end. `under` is a command to run it with. */
export function runToEnd(
  env: ProcessEnvironment,
  main: string = MAIN,
  args: readonly string[] = [],
  under: readonly string[] = [],
): Promise<ProcessEnd> {
  return endOf(begin(env, main, args, under));
}

/** Starts a node and sends it SIGTERM as soon as `isUnderWay`; how it ended. */
export async function stopWhileStarting(env: ProcessEnvironment, isUnderWay: () => boolean): Promise<ProcessEnd> {
  const node = begin(env, MAIN, []);
  const looking = setInterval(() => {
    if (!isUnderWay()) return;
    clearInterval(looking);
    node.signal('SIGTERM');
  }, 2);
  const end = await endOf(node);
  clearInterval(looking);
  return end;
}

/** Starts a node; resolves when it listens, rejects with what it said when it ends before that. */
export async function startNodeProcess(
  env: ProcessEnvironment,
  under: readonly string[] = [],
  main: string = MAIN,
): Promise<NodeProcess> {
  const { child, ended, signal, said } = begin(env, main, [], under);
  const announced = new Promise<void>((resolve) => {
    child.stdout.on('data', () => {
      if (/internal +\S+\n/.test(said())) resolve();
    });
  });
  await Promise.race([
    announced,
    ended.then(({ code, stderr }) => Promise.reject(new Error(`The node ended with ${code}: ${stderr}`))),
  ]);
  const found = (pattern: RegExp): string => {
    const [, value] = pattern.exec(said()) ?? [];
    if (value === undefined) throw new Error(`The node did not say ${pattern}: ${said()}`);
    return value;
  };
  const kill = async () => {
    signal('SIGKILL');
    await ended;
  };
  return {
    base: found(/REST +(\S+)\/v1/),
    grpcAddress: found(/gRPC +(\S+)/),
    opsBase: found(/internal +(\S+)\/(?:metrics|cluster)/),
    child,
    said,
    kill,
    terminate: () => {
      signal('SIGTERM');
      return ended;
    },
    ended,
    [Symbol.asyncDispose]: kill,
  };
}
