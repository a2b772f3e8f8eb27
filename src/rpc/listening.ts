import { once } from 'node:events';
import type { Server } from 'node:net';
import { setImmediate as immediate } from 'node:timers/promises';
import { limits } from '../runtime/limits/limits.ts';

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

/**
 * Accepts the connections that wait in the kernel, for at most drainIdleMs, or `graceMs` if that is less. Closing the
 * server would reset them, and their clients may have sent requests already.
 */
export async function acceptWaiting(server: Server, graceMs: number): Promise<void> {
  const endMs = performance.now() + Math.min(graceMs, limits.drainIdleMs);
  let mayWait = true;
  const accepted = (): void => {
    mayWait = true;
  };
  server.on('connection', accepted);
  // The first immediate may run before the event loop has looked for connections. Each iteration accepts one.
  await immediate();
  while (mayWait && performance.now() < endMs) {
    mayWait = false;
    await immediate();
  }
  server.off('connection', accepted);
}

export function addressOf(server: Server): { readonly host: string; readonly port: number } {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('The server does not listen on a port');
  return { host: address.address, port: address.port };
}
