import type { Agent } from 'undici';
import { sendRequest } from './outgoing-request.ts';
import { ConnectError, type ConnectFault, type ReceiverConnector } from './receiver-connect.ts';

/** A delivery succeeds if the receiver answers 2xx within this time. */
export const attemptTimeoutMs = 10_000;

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Aborts name look-up, connection, request and answer. */
  readonly signal: AbortSignal;
}

/** The body of the answer is discarded. */
export type PostResult =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'failed'; readonly fault: ConnectFault | 'broken_off' };

/** Sends POST requests. `post` never rejects because of the receiver. Disposing it closes all connections. */
export interface Poster extends AsyncDisposable {
  post(post: Post): Promise<PostResult>;
}

export const answerHeadersMaxBytes = 16 * 1024;
/** Less than the five seconds after which servers commonly close idle connections. */
const idleMs = 4_000;
const idleMaxMs = 30_000;

/** At most `perTargetMax` connections for each origin. No redirects are followed, no proxies used. */
export function createPoster(receivers: ReceiverConnector, perTargetMax: number): Poster {
  /** Running posts, and connections made meanwhile, by origin. */
  const made = new Map<string, { posts: number; connections: number }>();
  const options: Agent.Options = {
    connect: (receiver, callback) => {
      const origin = made.get(`${receiver.protocol}//${receiver.host}`);
      if (origin !== undefined) origin.connections += 1;
      receivers.connect(receiver, callback);
    },
    connections: perTargetMax,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMaxMs,
    maxHeaderSize: answerHeadersMaxBytes,
    // The signal of each request is its only deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  let opened: Promise<Agent> | null = null;
  /** undici is a tenth of a node's modules, and a node without webhooks needs none of it. */
  const open = (): Promise<Agent> => {
    opened ??= import('undici').then(({ Agent }) => new Agent(options));
    return opened;
  };

  return {
    post: async (post) => {
      const { url, headers, body, signal } = post;
      const agent = await open();
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
          // The receiver may close a kept connection just when it is used again. That is no failure, so the post is
          // retried.
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
    [Symbol.asyncDispose]: async () => {
      // If undici could not be loaded, nothing was posted.
      const agent = await opened?.catch(() => null);
      await agent?.destroy();
    },
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
