import { createServer, type Server } from 'node:net';
import { isFree } from '../../../cluster/local/ports.ts';

/** Below the ephemeral ports of the system, so that a restarted server finds its port free. */
const lowest = 20_000;
const blocks = 40;
const blockPorts = 300;

/** The ports of this process's block that were not given out yet. */
let next = 0;
let end = 0;
let taking: Promise<void> | null = null;

/**
 * Returns TCP ports of the loopback on which nothing listens, and which no outgoing connection takes. No other test
 * process of this machine gets them while this one runs, whether or not their servers run.
 */
export async function fixedPorts(count: number): Promise<number[]> {
  const found: number[] = [];
  while (found.length < count) {
    if (next === end) {
      taking ??= takeBlock().finally(() => {
        taking = null;
      });
      await taking;
      continue;
    }
    const port = next;
    next += 1;
    if (await isFree(port)) found.push(port);
  }
  return found;
}

/** A process has a block of ports for as long as it listens on the first of them: until it ends, however it ends. */
async function takeBlock(): Promise<void> {
  for (let first = lowest; first < lowest + blocks * blockPorts; first += blockPorts) {
    const server = await listenOn(first);
    if (server === null) continue;
    server.unref();
    next = first + 1;
    end = first + blockPorts;
    return;
  }
  throw new Error(`All ${blocks} blocks of ports are taken`);
}

/** null: something listens there already. */
function listenOn(port: number): Promise<Server | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
