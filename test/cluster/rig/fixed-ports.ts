import { createServer } from 'node:net';

/** Below the ports that the system hands out by itself: a server that is restarted finds its port free again. */
const lowest = 20_000;
const highest = 31_999;

/** TCP ports of the loopback that nobody listens on now, and that no outgoing connection will take. */
export async function fixedPorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    if (!ports.has(port) && (await isFree(port))) ports.add(port);
  }
  return [...ports];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
