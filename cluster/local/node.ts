import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeArguments, nodeVariables } from '../../src/runtime/limits/node-memory.ts';
import { StartError } from '../../src/runtime/start-error.ts';
import type { BalancedNode } from './balancer.ts';
import { type ServerProcess, startServerProcess } from './child-process.ts';
import { afterMs, freePorts, isReady } from './ports.ts';

const main = fileURLToPath(new URL('../main.ts', import.meta.url));
const startMaxMs = 60_000;
const pollMs = 50;
/** Longer than a node takes to stop after SIGTERM. */
const stopGraceMs = 20_000;

interface LocalNodeOptions {
  readonly id: string;
  /** The directory of the node's log. */
  readonly dir: string;
  /** The node's environment, without its id, hosts and ports. */
  readonly env: { readonly [name: string]: string | undefined };
  /** Default: free ports. */
  readonly ports?: Pick<BalancedNode, 'port' | 'grpcPort' | 'internalPort'>;
  readonly signal?: AbortSignal;
}

/** A clustered node as a process on the loopback. Disposing it stops the process. */
export interface LocalNode extends AsyncDisposable {
  readonly id: string;
  readonly at: BalancedNode;
  readonly base: string;
  readonly grpcAddress: string;
  readonly internalBase: string;
  readonly logFile: string;
  readonly process: ServerProcess;
}

/**
 * Starts `cluster/main.ts` and waits until the node is ready. Throws StartError if it exits or is not ready in time.
 */
export async function startLocalNode({ id, dir, env, ports, signal }: LocalNodeOptions): Promise<LocalNode> {
  const began = performance.now();
  const [port = 0, grpcPort = 0, internalPort = 0] =
    ports === undefined ? await freePorts(3) : [ports.port, ports.grpcPort, ports.internalPort];
  const host = '127.0.0.1';
  const logFile = join(dir, `${id}.log`);
  const process = await startServerProcess(globalThis.process.execPath, [...nodeArguments, main], logFile, {
    termGraceMs: stopGraceMs,
    env: {
      ...nodeVariables,
      ...env,
      NODE_ID: id,
      HOST: host,
      PORT: String(port),
      GRPC_PORT: String(grpcPort),
      INTERNAL_HOST: host,
      INTERNAL_PORT: String(internalPort),
      ADVERTISE_ADDRESS: host,
    },
  });
  const internalBase = `http://${host}:${internalPort}`;
  try {
    while (!(await isReady(host, internalPort))) {
      signal?.throwIfAborted();
      if (process.hasEnded()) throw new StartError(`${id} did not start: ${await saidAtEnd(process)}`);
      if (performance.now() - began > startMaxMs)
        throw new StartError(`${id} is not ready after ${startMaxMs / 1_000} s: see ${logFile}.`);
      await afterMs(pollMs);
    }
  } catch (error) {
    await process.kill();
    throw error;
  }
  return {
    id,
    at: { host, port, grpcPort, internalPort },
    base: `http://${host}:${port}`,
    grpcAddress: `${host}:${grpcPort}`,
    internalBase,
    logFile,
    process,
    [Symbol.asyncDispose]: () => process.stop(),
  };
}

async function saidAtEnd(process: ServerProcess): Promise<string> {
  return (await process.lastLine()).replace(/^ledger-trust: /, '');
}
