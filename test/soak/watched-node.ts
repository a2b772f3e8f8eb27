import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { imageVariables, nodeArguments, nodeVariables } from '../../src/runtime/limits/node-memory.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import { productionSettings } from '../support/production-settings.ts';

/** A node in production mode with default settings, started like in the image and watched from outside. */
interface WatchedNode extends AsyncDisposable {
  readonly node: NodeProcess;
  /** The most since the last call of this. */
  take(): Peaks;
  /** Without the mapped data file, whose pages the system takes back when it needs them. */
  anonymousMib(): number;
  hasEnded(): boolean;
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

/** `heapMib`: V8's limit of the old generation; null: its default. */
export async function startWatchedNode(heapMib: number | null): Promise<WatchedNode> {
  const dir = mkdtempSync(join(tmpdir(), 'ledger-soak-'));
  const node = await startNodeProcess({
    DATA_DIR: join(dir, 'data'),
    ...productionSettings(dir),
    ...nodeVariables,
    ...imageVariables,
    NODE_OPTIONS: [...nodeArguments, ...(heapMib === null ? [] : [`--max-old-space-size=${heapMib}`])].join(' '),
  });
  if (!readFileSync(`/proc/${node.child.pid}/maps`, 'utf8').includes('libjemalloc')) {
    await node.kill();
    rmSync(dir, { recursive: true, force: true });
    throw new Error('Install libjemalloc2: the node runs as in the image.');
  }
  let ended = false;
  void node.ended.then(() => {
    ended = true;
  });
  const mibOf = (field: 'VmRSS' | 'RssAnon'): number => {
    if (ended) return 0;
    const status = readFileSync(`/proc/${node.child.pid}/status`, 'utf8');
    const [, kib = '0'] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status) ?? [];
    return Math.round(Number(kib) / 1_024);
  };
  const filesMib = mibOf('VmRSS') - mibOf('RssAnon');
  let peaks = { memoryMib: 0, healthMs: 0, healthFailures: 0 };
  const stopping = new AbortController();
  const looking = (async () => {
    while (!stopping.signal.aborted && !ended) {
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
        healthFailures: peaks.healthFailures + (isWell || ended ? 0 : 1),
      };
      await delay(lookEveryMs);
    }
  })();
  return {
    node,
    anonymousMib: () => mibOf('RssAnon'),
    hasEnded: () => ended,
    take() {
      const taken = peaks;
      peaks = { memoryMib: 0, healthMs: 0, healthFailures: 0 };
      return taken;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await looking;
      await node.kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
