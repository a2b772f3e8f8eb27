import { createServer } from 'node:net';

/** Below the ports that the system hands out by itself: a server that is restarted finds its port free again. */
const lowest = 20_000;
const portsMax = 12_000;
/**
 * Each worker of the tests has ports of its own, since one that was given out is free for a while: until its server
 * listens, and while that is restarted. Workers that run at a time have numbers near each other.
 */
const workers = 40;
const worker = process.env.VITEST_WORKER_ID;
const ports = worker === undefined ? portsMax : portsMax / workers;
const first = lowest + ports * (Number(worker ?? 0) % workers);

/** Given out before, so taken, whether their server runs or not. */
const given = new Set<number>();

/** TCP ports of the loopback that nobody listens on now, and that no outgoing connection will take. */
export async function fixedPorts(count: number): Promise<number[]> {
  const found: number[] = [];
  while (found.length < count) {
    if (given.size === ports) throw new Error(`All ${ports} ports were given out`);
    const port = first + Math.floor(Math.random() * ports);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) found.push(port);
  }
  return found;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
