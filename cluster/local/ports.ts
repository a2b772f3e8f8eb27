import { connect, createServer } from 'node:net';

/** Returns different TCP ports on which nothing listens now. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once('error', reject);
          server.listen(0, '0.0.0.0', () => {
            const address = server.address();
            if (address !== null && typeof address === 'object') resolve(address.port);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
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
