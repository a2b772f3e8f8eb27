import { createServer } from 'node:net';

/** Below the ephemeral ports of the system, so that a restarted server finds its port free. */
const lowest = 20_000;
const portsMax = 12_000;
/** Each test worker has a range of ports. Workers that run at the same time have numbers near each other. */
const workers = 40;
const worker = process.env.VITEST_WORKER_ID;
const ports = worker === undefined ? portsMax : portsMax / workers;
const first = lowest + ports * (Number(worker ?? 0) % workers);

/** Ports that are taken, whether or not their servers run now. */
const given = new Set<number>();

/** Returns TCP ports of the loopback on which nothing listens, and which no outgoing connection takes. */
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
