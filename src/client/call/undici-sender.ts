import { Pool } from 'undici';
import type { ClientOptions, RestDispatcher } from './client-options.ts';
import { type HttpSender, textOf } from './http-sender.ts';

/**
 * The service has HTTP/1.1 here, and a hostile one can end a process by Node's HTTP/2: see
 * docs/adr/0060-http2-sessions-outlive-their-streams.md.
 */
const allowH2 = false;

/** Sends by a pool of connections of its own, or by the dispatcher that the options name. */
export function undiciSender(origin: string, { dispatcher, connections, ca }: ClientOptions): HttpSender {
  const connect = ca === undefined ? {} : { connect: { ca } };
  const pool: RestDispatcher =
    dispatcher ??
    new Pool(origin, {
      connections: connections ?? 64,
      allowH2,
      ...connect,
    });
  /** Live streams keep their connections, so calls never wait for one of these. */
  let livePool: RestDispatcher | null = null;
  const openLivePool = (): RestDispatcher => {
    livePool ??= new Pool(origin, { allowH2, ...connect });
    return livePool;
  };
  return {
    async send({ method, path, headers, body, signal, isLive = false }) {
      const chosen = isLive && dispatcher === undefined ? openLivePool() : pool;
      const answer = await chosen.request({
        origin,
        method: method as 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'PUT',
        path,
        headers: { ...headers },
        body,
        signal,
      });
      return {
        status: answer.statusCode,
        header(name) {
          const value = answer.headers[name];
          return typeof value === 'string' ? value : null;
        },
        text: () => textOf(answer.statusCode, answer.body),
        chunks: () => answer.body,
      };
    },
    async close() {
      if (dispatcher !== undefined) return;
      await Promise.all([pool.close(), livePool?.close()]);
    },
  };
}
