import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { setDefaultCACertificates } from 'node:tls';
import { imageVariables, nodeArguments, nodeVariables } from '../../src/runtime/limits/node-memory.ts';
import { startCluster } from '../cluster/rig/cluster-under-test.ts';
import { peerCertificate } from '../cluster/rig/peer-certificate.ts';
import { ownCertificate } from '../support/certificate.ts';
import { type ProcessEnvironment, startNodeProcess } from '../support/node-process.ts';
import { productionSettings } from '../support/production-settings.ts';

/** A node in production mode with default settings, started like in the image and watched from outside. */
interface WatchedNode extends AsyncDisposable, StartedNode {
  /** The most since the last call of this. */
  take(): Peaks;
  /** Without the mapped data file, whose pages the system takes back when it needs them. */
  anonymousMib(): number;
  /** A sentence for each node that has ended. */
  ended(): string[];
}

interface StartedNode {
  /** `http://host:port` */
  readonly base: string;
  /** `host:port` */
  readonly grpcAddress: string;
  /** `http://host:port` of the internal port */
  readonly opsBase: string;
  /** The certificate of its public ports, PEM; null: they have no TLS. */
  readonly certificate: string | null;
  readonly pid: number;
  /** `http://host:port` of each node of its cluster; its own first. */
  readonly bases: readonly [string, ...string[]];
  /** Whether it owns this ledger. */
  owns(ledgerId: string): Promise<boolean>;
  /** A sentence for each node that has ended; its own first. */
  ended(): string[];
}

interface Peaks {
  /**
   * Resident memory without what the mapped data file has grown to: its pages are the system's cache, grow with every
   * append and are given back when another needs them.
   */
  readonly memoryMib: number;
  /** The longest that `/v1/health` took. */
  readonly healthMs: number;
  /** Looks at `/v1/health` that were not answered with 200 within 10 s. */
  readonly healthFailures: number;
}

const lookEveryMs = 200;
const healthMaxMs = 10_000;
const balancedMaxMs = 60_000;

/** `cluster`: two nodes, with a Redis and a Cassandra of their own on this machine. */
const starters = { alone: startAlone, tls: startWithTls, cluster: startInCluster };

/** `heapMib`: V8's limit of the old generation; null: its default. */
export async function startWatchedNode(heapMib: number | null, kind: keyof typeof starters): Promise<WatchedNode> {
  const options = {
    ...nodeVariables,
    ...imageVariables,
    NODE_OPTIONS: [...nodeArguments, ...(heapMib === null ? [] : [`--max-old-space-size=${heapMib}`])].join(' '),
  };
  await using starting = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), 'ledger-soak-'));
  starting.defer(() => rmSync(dir, { recursive: true, force: true }));
  const node = await starters[kind](dir, options, starting);
  if (!readFileSync(`/proc/${node.pid}/maps`, 'utf8').includes('libjemalloc'))
    throw new Error('Install libjemalloc2: the node runs as in the image.');
  const hasEnded = (): boolean => node.ended().length > 0;
  const mibOf = (field: 'VmRSS' | 'RssAnon'): number => {
    if (hasEnded()) return 0;
    const status = readFileSync(`/proc/${node.pid}/status`, 'utf8');
    const [, kib = '0'] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status) ?? [];
    return Math.round(Number(kib) / 1_024);
  };
  const filesMib = mibOf('VmRSS') - mibOf('RssAnon');
  let peaks = { memoryMib: 0, healthMs: 0, healthFailures: 0 };
  const stopping = new AbortController();
  const looking = (async () => {
    while (!stopping.signal.aborted && !hasEnded()) {
      const begun = performance.now();
      const isWell = await fetch(`${node.base}/v1/health`, { signal: AbortSignal.timeout(healthMaxMs) })
        .then(async (response) => {
          await response.text();
          return response.status === 200;
        })
        .catch(() => false);
      peaks = {
        memoryMib: Math.max(peaks.memoryMib, mibOf('RssAnon') + filesMib),
        healthMs: Math.max(peaks.healthMs, Math.round(performance.now() - begun)),
        healthFailures: peaks.healthFailures + (isWell || hasEnded() ? 0 : 1),
      };
      await delay(lookEveryMs);
    }
  })();
  starting.defer(async () => {
    stopping.abort();
    await looking;
  });
  const stack = starting.move();
  return {
    ...node,
    anonymousMib: () => mibOf('RssAnon'),
    take() {
      const taken = peaks;
      peaks = { memoryMib: 0, healthMs: 0, healthFailures: 0 };
      return taken;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function startAlone(
  dir: string,
  options: ProcessEnvironment,
  starting: AsyncDisposableStack,
): Promise<StartedNode> {
  const env = { DATA_DIR: join(dir, 'data'), ...productionSettings(dir), ...options };
  const { base, grpcAddress, opsBase, child, ended, said } = starting.use(await startNodeProcess(env));
  let sentences: string[] = [];
  void ended.then(() => {
    sentences = [sentenceOf('the node', said())];
  });
  return {
    base,
    grpcAddress,
    opsBase,
    certificate: null,
    pid: child.pid ?? 0,
    bases: [base],
    owns: async () => true,
    ended: () => sentences,
  };
}

/** From here on, this process trusts the certificate of the node and no other. */
async function startWithTls(
  dir: string,
  options: ProcessEnvironment,
  starting: AsyncDisposableStack,
): Promise<StartedNode> {
  const [TLS_CERT_FILE, TLS_KEY_FILE] = [join(dir, 'tls.pem'), join(dir, 'tls.key')];
  const { cert, key } = ownCertificate();
  writeFileSync(TLS_CERT_FILE, cert);
  writeFileSync(TLS_KEY_FILE, key, { mode: 0o600 });
  const certificate = String(cert);
  setDefaultCACertificates([certificate]);
  const node = await startAlone(dir, { ...options, TLS_TERMINATED: '0', TLS_CERT_FILE, TLS_KEY_FILE }, starting);
  // The name in the certificate.
  const base = node.base.replace('127.0.0.1', 'localhost');
  return { ...node, base, bases: [base], certificate };
}

async function startInCluster(
  dir: string,
  options: ProcessEnvironment,
  starting: AsyncDisposableStack,
): Promise<StartedNode> {
  const production = { SVC_MODE: 'production', TLS_TERMINATED: '1', LOG_ORIGIN: 'ledger.example/v1' };
  const env = { ...production, ...ownTimings, ...peerCertificate(dir), ...options };
  const cluster = starting.use(await startCluster({ nodes: 2, cassandra: null, env }));
  await cluster.untilBalanced(balancedMaxMs);
  const [node, other] = [cluster.nodeAt(0), cluster.nodeAt(1)];
  if (node.process === null) throw new Error(`${node.id} does not run`);
  return {
    base: node.baseUrl,
    grpcAddress: new URL(node.grpcUrl).host,
    opsBase: node.internalUrl,
    certificate: null,
    pid: node.process.pid,
    bases: [node.baseUrl, other.baseUrl],
    owns: async (ledgerId) => (await cluster.ownerOf(ledgerId)) === node,
    ended: () =>
      [node, other]
        .filter(({ process }) => process?.hasEnded() !== false)
        .map(({ id, logFile }) => sentenceOf(id, readFileSync(logFile, 'utf8'))),
  };
}

/** The defaults of a node, which the rig shortens. */
const ownTimings = { LEASE_TTL_MS: '15000', REBALANCE_QUIET_MS: '5000' };

const sentenceOf = (name: string, said: string): string => `${name} ended: ${said.slice(-2_000)}`;
