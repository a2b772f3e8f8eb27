import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { frame, frameType, preface, settings, windowUpdate } from './http2-frames.ts';

export interface GrpcTarget {
  /** `host:port` */
  readonly grpc: string;
  /** The port speaks TLS, with a certificate that nobody knows. */
  readonly tls?: boolean;
}

export interface Attacker {
  readonly socket: Socket;
  /** False: the connection is over. Waits while the node does not read. */
  send(bytes: Uint8Array): Promise<boolean>;
  /** The next odd number of a stream. */
  nextStream(): number;
}

/** A connection of which nobody answers what the node sends, but for SETTINGS; all of it is read unless `isDeaf`. */
export async function attackerOf(
  { grpc, tls }: GrpcTarget,
  signal: AbortSignal,
  { windowBytes = 65_535, isDeaf = false } = {},
): Promise<Attacker> {
  const [host = '', port = ''] = grpc.split(':');
  const to = { host, port: Number(port) };
  const socket = tls === true ? connectTls({ ...to, rejectUnauthorized: false, ALPNProtocols: ['h2'] }) : connect(to);
  socket.on('error', () => {});
  const end = (): void => void socket.destroy();
  signal.addEventListener('abort', end, { once: true });
  socket.once('close', () => signal.removeEventListener('abort', end));
  if (!isDeaf) socket.resume();
  await Promise.race([once(socket, tls === true ? 'secureConnect' : 'connect'), once(socket, 'close')]).catch(() => {});
  let streams = 0;
  const send = async (bytes: Uint8Array): Promise<boolean> => {
    if (socket.destroyed || !socket.writable) return false;
    if (socket.write(bytes)) return true;
    const waiting = new AbortController();
    const heard = ['drain', 'close'].map((event) => once(socket, event, { signal: waiting.signal }));
    await Promise.race(heard.map((one) => one.catch(() => {})));
    waiting.abort();
    return !socket.destroyed;
  };
  await send(Buffer.concat([preface, settings({ 4: windowBytes }), frame(frameType.settings, 1, 0)]));
  if (windowBytes > 0) await send(windowUpdate(0, 2 ** 30));
  return { socket, send, nextStream: () => streams++ * 2 + 1 };
}

/**
 * Runs an attack on so many connections until the signal ends; what the node ends is begun again. Resolves to the bytes
 * that the attack sent, without the beginnings of connections.
 */
export async function onConnections(
  target: GrpcTarget,
  signal: AbortSignal,
  connections: number,
  attack: (attacker: Attacker) => Promise<void>,
  options: { readonly windowBytes?: number; readonly isDeaf?: boolean } = {},
): Promise<number> {
  let sentBytes = 0;
  const one = async (): Promise<void> => {
    while (!signal.aborted) {
      const attacker = await attackerOf(target, signal, options);
      const send = async (bytes: Uint8Array): Promise<boolean> => {
        const isSent = await attacker.send(bytes);
        if (isSent) sentBytes += bytes.length;
        return isSent;
      };
      await attack({ ...attacker, send });
      attacker.socket.destroy();
      await delay(20, undefined, { signal }).catch(() => {});
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
  return sentBytes;
}

/** Until the connection or the attack is over. */
export async function untilClosed({ socket }: Attacker): Promise<void> {
  if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve));
}
