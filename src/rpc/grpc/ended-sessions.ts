import type { Http2Server, Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { limits } from '../../runtime/limits/limits.ts';
import { isGone } from '../http/socket-state.ts';

/**
 * Destroys the sockets of HTTP/2 sessions that were destroyed. Node destroys such a socket only once its last write has
 * ended: never, if the other side does not read.
 */
export function endSockets(server: Http2Server): void {
  let accepted: Socket | null = null;
  // Node makes the session, if it does, in its own listener of the same event.
  for (const event of ['connection', 'secureConnection'])
    server.prependListener(event, (socket: Socket) => {
      accepted = socket;
      queueMicrotask(() => {
        accepted = null;
      });
    });
  server.on('session', (session) => {
    if (accepted !== null) endSocketWith(session, accepted);
  });
}

function endSocketWith(session: Http2Session, socket: Socket): void {
  const { destroy } = session;
  session.destroy = (...reason: Parameters<typeof destroy>) => {
    if (session.destroyed) return;
    // Node gives no reason at the end of a session that was closed in order. Its client may be taking the last answers.
    const isOrderly = session.closed && !reason[0];
    const ms = isOrderly ? limits.grpcClosedSessionMs : limits.grpcEndedSessionMs;
    destroy.apply(session, reason);
    if (isGone(socket)) return void socket.destroy();
    const late = setTimeout(() => socket.destroy(), ms).unref();
    socket.once('close', () => clearTimeout(late));
  };
}
