import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

/** Has a server listen on a free port of 127.0.0.1, and returns the port. */
export async function onLoopback(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}
