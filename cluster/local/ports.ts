import { randomInt } from 'node:crypto';
import { connect, createServer } from 'node:net';

/**
 * Below the ports that systems give to outgoing connections (32,768 on Linux), beside those of the tests' rig, and
 * above 10080, which `fetch` refuses.
 */
const lowestPort = 10_081;
const endPort = 20_000;

/**
 * Returns different TCP ports on which nothing listens now. No outgoing connection takes one of them before its server
 * listens, which on Cassandra is half a minute later.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(lowestPort, endPort);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

/** Whether nothing listens on the port, at any address. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => ('code' in error && error.code === 'EADDRINUSE' ? resolve(false) : reject(error)));
    server.listen(port, '0.0.0.0', () => server.close(() => resolve(true)));
  });
}

/** Whether a connection to the port is accepted within a second. Never rejects. */
export function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 1_000 });
    const end = (open: boolean) => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', () => end(true));
    socket.once('timeout', () => end(false));
    socket.once('error', () => end(false));
  });
}

/** Whether the node at an internal port says within a second that it is ready. Never rejects. */
export async function isReady(host: string, internalPort: number): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(1_000);
    const response = await fetch(`http://${host}:${internalPort}/health/ready`, { signal });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

export function afterMs(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
