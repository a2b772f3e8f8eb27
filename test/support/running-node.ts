import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';
import { readConfig } from '../../src/node/config.ts';
import { startEmbedded } from '../../src/node/embedded.ts';
import type { Environment } from '../../src/runtime/config/setting.ts';
import { createLog } from '../../src/runtime/telemetry/log.ts';

/** A whole node in this process, on free ports and with its data in a temporary directory. */
export interface RunningTestNode extends AsyncDisposable {
  /** `http://127.0.0.1:port` */
  readonly base: string;
  readonly grpcAddress: string;
  readonly opsBase: string;
  readonly dataDir: string;
  /** What was logged, a line each. */
  readonly lines: readonly string[];
  /** Stops it and leaves its data where they are. */
  stop(): Promise<void>;
}

export function temporaryDir(): string {
  return mkdtempSync(join(tmpdir(), 'ledger-api-'));
}

/** The same, removed after the suite that asks for it. */
export function suiteDir(): string {
  const dir = temporaryDir();
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** The same, removed after the running test. */
export function testDir(): string {
  const dir = temporaryDir();
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** `dataDir`: start on what another node left. Without it the directory is removed at the end. */
export async function runNode(
  options: { readonly env?: Environment; readonly dataDir?: string } = {},
): Promise<RunningTestNode> {
  const cluster = process.env.TEST_CLUSTER_ADDRESSES;
  if (cluster !== undefined && options.env === undefined && options.dataDir === undefined)
    return nodeOfCluster(cluster);
  const dataDir = options.dataDir ?? temporaryDir();
  const lines: string[] = [];
  const config = readConfig({
    HOST: '127.0.0.1',
    PORT: '0',
    GRPC_PORT: '0',
    OPS_PORT: '0',
    DATA_DIR: dataDir,
    ...options.env,
  });
  const log = createLog('info', { write: (line) => void lines.push(line) });
  const node = await startEmbedded(config, log, () => {});
  let stopped: Promise<void> | null = null;
  const stop = () => {
    stopped ??= node.stop();
    return stopped;
  };
  return {
    base: `${config.tls === null ? 'http' : 'https'}://127.0.0.1:${node.http.port}`,
    grpcAddress: `127.0.0.1:${node.grpc.port}`,
    opsBase: `http://127.0.0.1:${node.ops.port}`,
    dataDir,
    lines,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** The cluster beside the whole suite (test/cluster/api) in place of a node of the test; it outlives the test. */
function nodeOfCluster(text: string): RunningTestNode {
  const { logFiles, ...addresses } = JSON.parse(text) as Pick<
    RunningTestNode,
    'base' | 'grpcAddress' | 'opsBase' | 'dataDir'
  > & { readonly logFiles: readonly string[] };
  return {
    ...addresses,
    get lines() {
      return logFiles.flatMap((file) =>
        readFileSync(file, 'utf8')
          .split('\n')
          .filter((line) => line.startsWith('{')),
      );
    },
    stop: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
}
