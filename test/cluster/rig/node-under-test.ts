import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ServerProcess, startServerProcess } from '../../../cluster/local/child-process.ts';
import { afterMs } from '../../../cluster/local/ports.ts';
import { compileCache } from '../../support/compile-cache.ts';
import { type Cut, openCut } from './cut.ts';
import { fixedPorts } from './fixed-ports.ts';

const thisCheckout = fileURLToPath(new URL('../../..', import.meta.url));
/** On a busy machine. */
const readyMaxMs = 180_000;
const pollMs = 50;

/** The fields of `/cluster` of the internal port that tests use. */
export interface ClusterView {
  readonly members: readonly { readonly id: string; readonly draining: boolean }[];
  /** The shards that the node believes to have: those that it keeps, and those that it is handing over. */
  readonly shards: { readonly held: number; readonly leaving: number };
  /** By shard number. */
  readonly owners: Readonly<Record<string, string>>;
}

/** The end of a node after SIGTERM. */
export interface Stopped {
  readonly id: string;
  /** null: a signal ended it. */
  readonly code: number | null;
  readonly tookMs: number;
}

/** `node cluster/main.ts`, with fixed ports, and with cuts before it and between it and Redis. */
export interface NodeUnderTest extends AsyncDisposable {
  readonly id: string;
  readonly baseUrl: string;
  readonly grpcUrl: string;
  /** Not through a cut. */
  readonly internalUrl: string;
  readonly logFile: string;
  /** The cut for commands of other nodes to this one. */
  readonly fromPeers: Cut;
  readonly toRedis: Cut;
  readonly process: ServerProcess | null;
  /** Starts it, and waits until it is ready if `ready` is not false. `checkout`: whose program; default: this one's. */
  start(options?: { readonly ready?: boolean; readonly checkout?: string | undefined }): Promise<void>;
  untilReady(maxMs?: number): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Sends SIGTERM, and resolves when the node has ended. */
  terminate(): Promise<Stopped>;
  pause(): void;
  resume(): void;
  /** Status and text of /health/ready. */
  readiness(): Promise<{ readonly status: number; readonly text: string }>;
  view(): Promise<ClusterView>;
  /** The text of /metrics. */
  metrics(): Promise<string>;
  /** The value of a series in /metrics. Rejects if there is none. */
  counted(series: string): Promise<number>;
}

interface NodeParts {
  readonly id: string;
  readonly dir: string;
  readonly redisPort: number;
  readonly env: Readonly<Record<string, string>>;
}

/** Prepares a node, without starting it. */
export async function layOutNode({ id, dir, redisPort, env }: NodeParts): Promise<NodeUnderTest> {
  const [rest = 0, grpc = 0, internal = 0, peers = 0, redis = 0] = await fixedPorts(5);
  const fromPeers = await openCut({ host: '127.0.0.1', port: internal }, peers);
  const toRedis = await openCut({ host: '127.0.0.1', port: redisPort }, redis);
  const logFile = join(dir, `${id}.log`);
  const dataDir = join(dir, id);
  mkdirSync(dataDir, { recursive: true });
  const own = {
    NODE_ID: id,
    HOST: '127.0.0.1',
    PORT: String(rest),
    GRPC_PORT: String(grpc),
    INTERNAL_HOST: '127.0.0.1',
    INTERNAL_PORT: String(internal),
    ADVERTISE_ADDRESS: `127.0.0.1:${peers}`,
    REDIS_URL: `redis://127.0.0.1:${redis}`,
    DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '',
    ...compileCache,
    ...env,
  };
  const variables = Object.entries(own).map(([name, value]) => `${name}=${value}`);
  const internalUrl = `http://127.0.0.1:${internal}`;
  const ask = (path: string) => fetch(internalUrl + path, { signal: AbortSignal.timeout(2_000) });
  const metrics = async () => (await ask('/metrics')).text();
  let running: ServerProcess | null = null;
  const untilReady = async (maxMs = readyMaxMs) => {
    const began = performance.now();
    for (;;) {
      if (running === null || running.hasEnded())
        throw new Error(`${id} has ended: ${readFileSync(logFile, 'utf8').slice(-2_000)}`);
      const isReady = await ask('/health/ready').then(
        ({ ok }) => ok,
        () => false,
      );
      if (isReady) return;
      if (performance.now() - began > maxMs) throw new Error(`${id} is not ready after ${maxMs} ms; see ${logFile}`);
      await afterMs(pollMs);
    }
  };
  return {
    id,
    baseUrl: `http://127.0.0.1:${rest}`,
    grpcUrl: `http://127.0.0.1:${grpc}`,
    internalUrl,
    logFile,
    fromPeers,
    toRedis,
    get process() {
      return running;
    },
    async start({ ready = true, checkout = thisCheckout } = {}) {
      if (running !== null && !running.hasEnded()) throw new Error(`${id} runs already`);
      // `env` executes the node in its own process, so the pid is that of the node.
      const main = join(checkout, 'cluster/main.ts');
      running = await startServerProcess('env', ['-i', ...variables, process.execPath, main], logFile);
      if (ready) await untilReady();
    },
    untilReady,
    async kill() {
      await running?.kill();
    },
    async terminate() {
      if (running === null) throw new Error(`${id} does not run`);
      const began = performance.now();
      if (!running.hasEnded()) process.kill(running.pid, 'SIGTERM');
      return { id, code: await running.ended, tookMs: performance.now() - began };
    },
    pause: () => running?.pause(),
    resume: () => running?.resume(),
    async readiness() {
      const answer = await ask('/health/ready');
      return { status: answer.status, text: await answer.text() };
    },
    view: async () => (await (await ask('/cluster')).json()) as ClusterView,
    metrics,
    async counted(series) {
      const line = (await metrics()).split('\n').find((one) => one.startsWith(`${series} `));
      if (line === undefined) throw new Error(`${id} has no metric ${series}`);
      return Number(line.slice(series.length));
    },
    async [Symbol.asyncDispose]() {
      running?.resume();
      await running?.kill();
      await Promise.all([fromPeers[Symbol.asyncDispose](), toRedis[Symbol.asyncDispose]()]);
    },
  };
}

/** Restarts each node that ended by itself. Returns a sentence for each. */
export async function restartEnded(
  nodes: readonly Pick<NodeUnderTest, 'id' | 'logFile' | 'process' | 'start'>[],
): Promise<string[]> {
  const ended = nodes.filter(({ process }) => process?.hasEnded() === true);
  await Promise.all(ended.map((node) => node.start()));
  return ended.map(({ id, logFile }) => `${id} ended by itself; see ${logFile}`);
}
