import type { WatermarkStore } from '../watermark-store.ts';
import type { Credential } from './credential.ts';
import type { RetryClock } from './retry.ts';

/**
 * A dispatcher of undici, as far as the client uses it. The types of undici and of grpc-js are not named here: they
 * need the types of Node, which pages do not have.
 */
export interface RestDispatcher {
  request(options: {
    readonly origin: string;
    readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'PUT';
    readonly path: string;
    readonly headers: Record<string, string>;
    readonly body: Uint8Array | null;
    readonly signal: AbortSignal;
  }): Promise<{
    readonly statusCode: number;
    readonly headers: Readonly<Record<string, string | string[] | undefined>>;
    readonly body: AsyncIterable<Uint8Array> & { text(): Promise<string> };
  }>;
  close(): Promise<void>;
}

/** What a client is made with. Without a credential, only methods that need none succeed. */
export interface ClientOptions extends Credential {
  /**
   * The service's URL, for example `https://ledger.example`. A path in it is put before every path of the API.
   * Required unless `transport` is `grpc`.
   */
  readonly baseUrl?: string;
  /**
   * `http://host:port` for plain text, `https://host:port` for TLS. Required for append streams, and if `transport` is
   * `grpc`. Node only, as are `ca`, `connections`, `dispatcher` and `grpcChannel`: a page that gives one of these gets
   * a TypeError.
   */
  readonly grpcUrl?: string;
  /** The transport of all calls but append streams; `rest` if left out. */
  readonly transport?: 'rest' | 'grpc';
  /** Milliseconds for all attempts and waits of a call together; 30,000 if left out. */
  readonly timeoutMs?: number;
  /** Milliseconds for one attempt; 12,000 if left out. */
  readonly attemptTimeoutMs?: number;
  /** How many times a call is sent at most; 5 if left out. */
  readonly attemptsMax?: number;
  /** How many REST connections at most; 64 if left out. */
  readonly connections?: number;
  /** Certificates to trust in place of the system's, PEM. */
  readonly ca?: string;
  /**
   * An undici dispatcher (proxy, mock) in place of the client's own pool. The client does not close it. Make it with
   * `allowH2: false`: over HTTP/2, which undici 8 takes where it is offered, a hostile service can end the process.
   */
  readonly dispatcher?: RestDispatcher;
  /** Channel options of grpc-js. They override the client's own. */
  readonly grpcChannel?: { readonly [name: string]: string | number | undefined };
  /** Milliseconds since 1970, for X-Timestamp. `Date.now` if left out. */
  readonly now?: () => number;
  /** The time and randomness of retries. The system's if left out. */
  readonly retryClock?: RetryClock;
  /**
   * Which name and keys of the service are accepted for checkpoints, and the newest verified checkpoint of each log:
   * `new Watermarks(file)` in Node. If left out, the client keeps them until it ends.
   */
  readonly watermarks?: WatermarkStore;
  /** Makes idempotency keys. Random UUIDs if left out. */
  readonly newId?: () => string;
}
