import type { Http2Server, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { logVerbosity, type Server, setLogVerbosity } from '@grpc/grpc-js';
import { endSockets } from './ended-sessions.ts';
import { keepSessions } from './session-memory.ts';

/** Members that grpc-js 1.14 declares private, and reads whenever it starts to serve a port or connections. */
interface StreamHandling {
  _setupHandlers(http2Server: Http2Server | null, interceptors: unknown): void;
  _streamHandler(interceptors: unknown, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void;
}

/**
 * Keeps an exception in the handling of one stream from ending the thread. grpc-js answers what is no gRPC, and unknown
 * methods, without a look at whether the client has reset the stream already, which throws. Also silences grpc-js in
 * this thread: it writes headers that it cannot read, credentials among them, to standard error. Sessions are kept in
 * memory as long as `keepSessions` says, and their sockets end as `endSockets` says.
 */
export function guardStreams<S extends Server>(server: S): S {
  setLogVerbosity(logVerbosity.NONE);
  const guarded = server as unknown as StreamHandling;
  const setUp = guarded._setupHandlers;
  guarded._setupHandlers = (http2Server, interceptors) => {
    if (http2Server !== null) {
      keepSessions(http2Server);
      endSockets(http2Server);
    }
    setUp.call(server, http2Server, interceptors);
  };
  const handle = guarded._streamHandler;
  guarded._streamHandler = (interceptors, stream, headers) => {
    try {
      handle.call(server, interceptors, stream, headers);
    } catch (error) {
      if (!stream.closed && !stream.destroyed) process.emitWarning(error as Error);
      stream.destroy();
    }
  };
  return server;
}
