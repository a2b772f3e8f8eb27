import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Http2Session, Http2Stream } from 'node:http2';

/**
 * Keeps HTTP/2 sessions of this thread in memory until their streams were collected. Node 24 to 26 end the whole
 * process (`Assertion failed: (current_nghttp2_memory_) == (0)`) if V8 collects the native half of a session before
 * that of a stream with headers that were refused or did not end. Any client can bring that about, without a credential
 * (docs/adr/0060-http2-sessions-outlive-their-streams.md). Servers also need `keepSession`.
 */
export function keepSessions(): void {
  // Diagnostics channels of Node. Subscribed once a thread, however many servers it has.
  for (const [name, listener] of channels) {
    unsubscribe(name, listener);
    subscribe(name, listener);
  }
}

/**
 * Call it for each new session of a server: Node tells nothing of a stream whose first headers are refused. Does
 * nothing if it was called for the session already.
 */
export function keepSession(session: Http2Session): void {
  if (isKept in session) return;
  const handle = handleOf(session);
  if (handle === undefined) return;
  Object.defineProperty(session, isKept, { value: true });
  // What Node has put off to the end of this iteration of the event loop may still need it.
  session.once('close', () => setImmediate(hold, handle));
}

interface StreamMessage {
  readonly stream: Http2Stream;
}

const channels: readonly (readonly [string, (message: unknown) => void])[] = [
  ['http2.server.stream.close', keepUntilCollected],
  // To other nodes.
  ['http2.client.stream.start', keepOf],
  ['http2.client.stream.close', keepUntilCollected],
];

/** No WeakMap: with an entry for each, sessions that have ended would live until the next full collection. */
const isKept = Symbol('kept');
/** Holds a session's native half until that of a stream was collected. */
const collected = new FinalizationRegistry<object>(() => {});

function keepOf(message: unknown): void {
  const { session } = (message as StreamMessage).stream;
  if (session !== undefined) keepSession(session);
}

/**
 * Only what the other side has not ended can have a second block of headers, and Node leaves only what waits to be
 * written to V8: most calls have ended.
 */
function keepUntilCollected(message: unknown): void {
  const { stream } = message as StreamMessage;
  if (stream.readableEnded || stream.writableLength === 0) return;
  const { session } = stream;
  const handle = handleOf(stream);
  const sessionHandle = session && handleOf(session);
  if (handle !== undefined && sessionHandle !== undefined) collected.register(handle, sessionHandle);
}

/** Node keeps the native half behind a symbol that it does not publish. */
let handleSymbol: symbol | undefined;

function handleOf(owner: Http2Session | Http2Stream): object | undefined {
  handleSymbol ??= Object.getOwnPropertySymbols(owner).find(({ description }) => description === 'kHandle');
  return handleSymbol === undefined
    ? undefined
    : (owner as unknown as Record<symbol, object | undefined>)[handleSymbol];
}

function hold(_handle: object): void {}
