import { once } from 'node:events';
import type { Server } from 'node:net';

export interface Listener extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** Takes no new connections, lets calls finish for at most `graceMs`, then ends what is left. */
  close(graceMs: number): Promise<void>;
}

/** Listens on `port`. Rejects with an Error whose message names the address if that fails. */
export async function listenOn(server: Server, host: string, port: number): Promise<void> {
  server.listen({ host, port, backlog: 1024 });
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new Error(`Cannot listen on ${host} port ${port}: ${(error as Error).message}`, { cause: error });
  }
}

export function addressOf(server: Server): { readonly host: string; readonly port: number } {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('The server does not listen on a port');
  return { host: address.address, port: address.port };
}
