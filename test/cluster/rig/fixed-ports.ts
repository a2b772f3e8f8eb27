import { createServer } from 'node:net';

/** Below the ports that the system hands out by itself: a server that is restarted finds its port free again. */
const lowest = 20_000;
const highest = 31_999;

/** Given out before, so taken, whether their server runs or not. */
const given = new Set<number>();

/** TCP ports of the loopback that nobody listens on now, and that no outgoing connection will take. */
export async function fixedPorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) ports.push(port);
  }
  return ports;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
