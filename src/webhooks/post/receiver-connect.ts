import { constants } from 'node:crypto';
import { isIP, type Socket, connect as tcpConnect } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import type { buildConnector } from 'undici';
import type { Clock } from '../../runtime/clock/clock.ts';
import { hostOf, mayConnect, portOf, type TargetPolicy } from '../../service/webhooks/webhook-target.ts';
import type { NameLookup } from './name-lookup.ts';
import { BoundedStream, boundReceived } from './received-bound.ts';

/** Callers must not show an error's cause to anyone: it may reveal internal hosts and addresses. */
export type ConnectFault = 'unknown_name' | 'forbidden_address' | 'not_reached' | 'tls_failed' | 'timeout';

export class ConnectError extends Error {
  readonly fault: ConnectFault;

  constructor(fault: ConnectFault, cause?: unknown) {
    super(`no connection to the receiver: ${fault}`, cause === undefined ? undefined : { cause });
    this.name = 'ConnectError';
    this.fault = fault;
  }
}

interface ReceiverConnectParts {
  readonly policy: TargetPolicy;
  readonly lookup: NameLookup;
  readonly clock: Clock;
  /** PEM of certificate authorities that replace the default ones. */
  readonly trustedCa?: string;
}

/** As long as an attempt, so that no half-open socket stays behind. */
const connectTimeoutMs = 10_000;
/** Of a name's addresses. The ones behind them are not looked at, so they are never connected to either. */
export const addressesMax = 4;

export interface ReceiverConnector {
  readonly connect: buildConnector.connector;
  /**
   * Call it before each attempt. Closes kept connections to the origin that the target policy does not allow any more.
   */
  recheck(origin: string): void;
}

interface Connected {
  readonly socket: Socket;
  /** The socket itself, or the one below TLS. */
  readonly raw: Socket;
  readonly protocol: string;
  readonly port: number;
}

/**
 * Creates the connector with which undici connects to receivers. It connects to the address that it has looked up and
 * checked, so that no second look-up can lead elsewhere. The remote address of the socket is checked again before a
 * byte is sent, and before each later use. `connect` fails with ConnectError.
 */
export function receiverConnector(parts: ReceiverConnectParts): ReceiverConnector {
  const byOrigin = new Map<string, Set<Connected>>();
  const remember = (origin: string, connected: Connected) => {
    const here = byOrigin.get(origin) ?? new Set();
    byOrigin.set(origin, here.add(connected));
    connected.socket.once('close', () => {
      here.delete(connected);
      if (here.size === 0 && byOrigin.get(origin) === here) byOrigin.delete(origin);
    });
  };
  return {
    connect: (options, callback) => {
      const { protocol } = options;
      connectChecked(parts, options).then(
        ({ socket, raw }) => {
          remember(`${protocol}//${options.host}`, {
            socket,
            raw,
            protocol,
            port: portOf({ port: options.port, protocol }),
          });
          callback(null, socket);
        },
        (error) => callback(error instanceof ConnectError ? error : new ConnectError('not_reached', error), null),
      );
    },
    recheck: (origin) => {
      for (const { socket, raw, protocol, port } of byOrigin.get(origin) ?? [])
        if (!mayConnect(parts.policy, protocol, raw.remoteAddress ?? '', port)) socket.destroy();
    },
  };
}

async function connectChecked(
  parts: ReceiverConnectParts,
  options: buildConnector.Options,
): Promise<Pick<Connected, 'socket' | 'raw'>> {
  const { policy, clock } = parts;
  const host = hostOf(options);
  const { protocol } = options;
  const port = portOf({ port: options.port, protocol });
  const late = new AbortController();
  const cancel = clock.after(connectTimeoutMs, () => late.abort());
  try {
    const found = isIP(host) === 0 ? await orLate(parts.lookup(host), late.signal) : [host];
    if (found.length === 0) throw new ConnectError('unknown_name');
    const allowed = found.slice(0, addressesMax).filter((address) => mayConnect(policy, protocol, address, port));
    if (allowed.length === 0) throw new ConnectError('forbidden_address');
    const raw = await connectToOneOf(parts, protocol, allowed, port, late.signal);
    if (protocol === 'https:') return { socket: await secured(parts, raw, host, late.signal), raw };
    boundReceived(raw);
    return { socket: raw, raw };
  } finally {
    cancel();
  }
}

async function connectToOneOf(
  { policy }: ReceiverConnectParts,
  protocol: string,
  addresses: readonly string[],
  port: number,
  late: AbortSignal,
): Promise<Socket> {
  let failure: unknown = null;
  for (const address of addresses) {
    try {
      const socket = tcpConnect({ host: address, port, noDelay: true, autoSelectFamily: false });
      await ready(socket, 'connect', 'not_reached', late);
      if (mayConnect(policy, protocol, socket.remoteAddress ?? '', port)) return socket;
      socket.destroy();
      throw new ConnectError('forbidden_address');
    } catch (error) {
      if (late.aborted || (error instanceof ConnectError && error.fault === 'forbidden_address')) throw error;
      failure = error;
    }
  }
  throw failure;
}

async function secured(parts: ReceiverConnectParts, raw: Socket, host: string, late: AbortSignal): Promise<Socket> {
  const bounded = new BoundedStream(raw, () => secure.bytesWritten);
  const secure = tlsConnect({
    socket: bounded,
    host,
    servername: isIP(host) === 0 ? host.replace(/\.$/, '') : '',
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    // A handshake is costly, and the receiver could ask for one after the other.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(parts.trustedCa === undefined ? {} : { ca: parts.trustedCa }),
  });
  bounded.on('error', (error) => secure.destroy(error));
  secure.once('close', () => bounded.destroy());
  await ready(secure, 'secureConnect', 'tls_failed', late);
  return secure;
}

/** If the socket fails or `late` is aborted, destroys it and rejects with ConnectError. */
function ready(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  fault: ConnectFault,
  late: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (error: ConnectError | null) => {
      socket.off('error', failed).off('close', closed).off(event, done);
      late.removeEventListener('abort', timeout);
      if (error === null) return resolve();
      // destroy() may still emit an error, which nothing else handles.
      socket.on('error', () => {}).destroy();
      reject(error);
    };
    const failed = (error: Error) => end(new ConnectError(fault, error));
    const closed = () => end(new ConnectError(fault));
    const timeout = () => end(new ConnectError('timeout'));
    const done = () => end(null);
    socket.on('error', failed).on('close', closed).on(event, done);
    late.addEventListener('abort', timeout);
    if (late.aborted) timeout();
  });
}

function orLate<T>(work: Promise<T>, late: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    late.addEventListener('abort', () => reject(new ConnectError('timeout')));
    work.then(resolve, reject);
  });
}
