import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** The beginning of a TLS handshake: a record that promises 4 KiB. */
export const tlsHello = Buffer.from([0x16, 3, 1, 16, 0, 1]);

export interface Beginning {
  readonly host: string;
  readonly port: number;
  readonly localAddress?: string;
  /** All that is sent. */
  readonly sent: Uint8Array;
}

/**
 * Keeps connections that begin and do not go on; what the node ends is begun again. Resolves to how many began once the
 * signal has ended.
 */
export async function keepBegun(beginnings: readonly Beginning[], signal: AbortSignal): Promise<number> {
  let begun = 0;
  const one = async ({ sent, ...to }: Beginning): Promise<void> => {
    while (!signal.aborted) {
      const socket = connect(to, () => {
        begun += 1;
        socket.write(sent);
      }).on('error', () => {});
      const end = (): void => void socket.destroy();
      signal.addEventListener('abort', end, { once: true });
      socket.resume();
      await new Promise((resolve) => socket.once('close', resolve));
      signal.removeEventListener('abort', end);
      // What the node ends at once, such as a TLS hello without TLS, is no flood of connections.
      await delay(250, undefined, { signal }).catch(() => {});
    }
  };
  await Promise.all(beginnings.map(one));
  return begun;
}
