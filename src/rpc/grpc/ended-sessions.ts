import type { Http2Server, Http2Session } from 'node:http2';
import type { Duplex } from 'node:stream';
import { limits } from '../../runtime/limits/limits.ts';

/**
 * Destroys the sockets of HTTP/2 sessions that were destroyed. Node destroys such a socket only once its last write has
 * ended: never, if the other side does not read.
 */
export function endSockets(server: Http2Server): void {
  let accepted: Duplex | null = null;
  for (const event of ['connection', 'secureConnection'])
    server.prependListener(event, (socket: Duplex) => {
      accepted = socket;
    });
  // Node makes the session in its own listener of the same event.
  server.on('session', (session) => {
    if (accepted !== null) endSocketWith(session, accepted);
    accepted = null;
  });
}

function endSocketWith(session: Http2Session, socket: Duplex): void {
  const { destroy } = session;
  session.destroy = (...reason: Parameters<typeof destroy>) => {
    if (session.destroyed) return;
    // After an orderly end, its client may still be taking the last answers.
    const ms = session.closed ? limits.grpcAnswerTimeoutMs : limits.grpcEndedSessionMs;
    destroy.apply(session, reason);
    const late = setTimeout(() => socket.destroy(), ms).unref();
    socket.once('close', () => clearTimeout(late));
  };
}
