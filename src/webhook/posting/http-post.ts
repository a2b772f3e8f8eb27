import { Agent } from 'undici';
import { sendRequest } from './outgoing-request.ts';
import { ConnectError, type ConnectFault, type ReceiverConnector } from './receiver-connect.ts';

/** decisions.md, section 7: success is a 2xx within this. */
export const attemptTimeoutMs = 10_000;

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Ends the whole exchange: name, connection, request, answer. */
  readonly signal: AbortSignal;
}

/** What became of a POST. An answer's body is read and thrown away. */
export type PostResult =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'failed'; readonly fault: ConnectFault | 'broken_off' };

export interface Poster extends AsyncDisposable {
  post(post: Post): Promise<PostResult>;
}

export const answerHeadersMaxBytes = 16 * 1024;
/** Servers commonly close idle connections after five seconds. */
const idleMs = 4_000;
const idleMaxMs = 30_000;

/** Posts through connections that `receivers` makes. Redirects are answers like any other; no proxy is ever asked. */
export function createPoster(receivers: ReceiverConnector, perTargetMax: number): Poster {
  /** Connections made to origins that are being posted to. */
  const made = new Map<string, { posts: number; connections: number }>();
  const agent = new Agent({
    connect: (options, callback) => {
      const origin = made.get(`${options.protocol}//${options.host}`);
      if (origin !== undefined) origin.connections += 1;
      receivers.connect(options, callback);
    },
    connections: perTargetMax,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMaxMs,
    maxHeaderSize: answerHeadersMaxBytes,
    // The signal of each request is its one deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  return {
    post: async (post) => {
      const { url, headers, body, signal } = post;
      const { origin, pathname, search } = new URL(url);
      const request = { origin, path: pathname + search, method: 'POST', headers, body } as const;
      const here = made.get(origin) ?? { posts: 0, connections: 0 };
      made.set(origin, here);
      here.posts += 1;
      const before = here.connections;
      receivers.recheck(origin);
      try {
        try {
          return { kind: 'answered', status: await sendRequest(agent, request, signal) };
        } catch (error) {
          // A connection kept from before may be closed just as it is used again: that is no failure of the receiver's.
          const wasKept = here.connections === before;
          if (!wasKept || signal.aborted || !isBrokenOff(error)) throw error;
          return { kind: 'answered', status: await sendRequest(agent, request, signal) };
        }
      } catch (error) {
        return { kind: 'failed', fault: faultOf(error, signal) };
      } finally {
        here.posts -= 1;
        if (here.posts === 0) made.delete(origin);
      }
    },
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

function faultOf(error: unknown, signal: AbortSignal): ConnectFault | 'broken_off' {
  if (signal.aborted) return 'timeout';
  return error instanceof ConnectError ? error.fault : 'broken_off';
}

function isBrokenOff(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE';
}
