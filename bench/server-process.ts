import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkoutVariables, nodeArguments } from '../src/runtime/limits/node-memory.ts';
import { sumOf } from './sum.ts';

export interface ServerProcess {
  readonly pid: number;
  readonly baseUrl: string;
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly opsPort: number;
  stop(): Promise<void>;
}

const startMaxMs = 20_000;

export const ownCheckout = fileURLToPath(new URL('..', import.meta.url));

/**
 * Starts the service of a checkout on free ports with its data in `dataDir`, and waits until it says that it serves.
 */
export async function startServer(
  dataDir: string,
  profileDir: string | null,
  checkout = ownCheckout,
): Promise<ServerProcess> {
  const profile = profileDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profileDir)}`];
  const child = spawn(process.execPath, [...nodeArguments, ...profile, join(checkout, 'src/main.ts')], {
    cwd: checkout,
    env: {
      ...checkoutVariables,
      ...process.env,
      HOST: '127.0.0.1',
      PORT: '0',
      GRPC_PORT: '0',
      OPS_PORT: '0',
      DATA_DIR: dataDir,
      LOG_LEVEL: process.env.LOG_LEVEL ?? 'warn',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const announced = await announcement(child);
  const port = (pattern: RegExp): number => {
    const found = pattern.exec(announced)?.[1];
    if (found === undefined) throw new Error(`the server did not say its ports:\n${announced}`);
    return Number(found);
  };
  const httpPort = port(/REST\s+http:\/\/[^:]+:(\d+)/);
  return {
    pid: child.pid ?? 0,
    baseUrl: `http://127.0.0.1:${httpPort}`,
    httpPort,
    grpcPort: port(/gRPC\s+[^:]+:(\d+)/),
    opsPort: port(/internal\s+http:\/\/[^:]+:(\d+)/),
    stop: () => stop(child),
  };
}

/** Starts the service for `measure`, and removes its data afterwards. `workDir` is free for other files. */
export async function withServer<Result>(
  profileDir: string | null,
  measure: (server: ServerProcess, workDir: string) => Promise<Result>,
  checkout = ownCheckout,
): Promise<Result> {
  const workDir = mkdtempSync(join(tmpdir(), 'ledger-bench-'));
  const server = await startServer(join(workDir, 'data'), profileDir, checkout);
  try {
    return await measure(server, workDir);
  } finally {
    await server.stop();
    rmSync(workDir, { recursive: true });
  }
}

function announcement(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const late = setTimeout(() => reject(new Error(`the server did not start:\n${text}`)), startMaxMs);
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk;
      if (!/internal .*\n/.test(text)) return;
      clearTimeout(late);
      resolve(text);
    });
  });
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.removeAllListeners('exit');
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`the server stopped with ${code}`))));
    child.kill('SIGTERM');
  });
}

/** CPU time in µs since the start of the process: of all threads, and of the main one. */
interface CpuTime {
  readonly allUs: number;
  readonly mainUs: number;
}

/** Linux counts CPU time in ticks of 10 ms (USER_HZ). */
const tickUs = 10_000;

export function cpuTime(pid: number): CpuTime {
  return { allUs: usedUs(`/proc/${pid}/stat`), mainUs: usedUs(`/proc/${pid}/task/${pid}/stat`) };
}

/** What a `stat` of proc(5) says of user and system time. */
function usedUs(file: string): number {
  const fields = readFileSync(file, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * tickUs;
}

/** Processor ticks of the machine since its start (proc(5), /proc/stat): `kept` is steal time. */
export function processorTicks(): { readonly given: number; readonly kept: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, kept = 0] = line.split(/ +/).slice(1).map(Number);
  return { given: user + nice + system + irq + softIrq, kept };
}

/** CPU time of the whole machine that was not idle, in µs, with what the host took away. */
export function machineCpuUs(): number {
  const { given, kept } = processorTicks();
  return (given + kept) * tickUs;
}

/** Anonymous memory of a process and of those that it started, MiB. */
export function anonymousMib(pid: number): number {
  const own = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  const children = readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' '))
    .filter((child) => child !== '');
  return Number(own ?? 0) / 1_024 + sumOf(children, (child) => anonymousMib(Number(child)));
}
