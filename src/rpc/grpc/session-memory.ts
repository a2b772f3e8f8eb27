import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type Http2Server, type Http2Session, type Http2Stream, performServerHandshake } from 'node:http2';
import { Duplex } from 'node:stream';

/**
 * Keeps HTTP/2 sessions of a server, and of the clients of its thread, in memory until their streams were collected.
 * Node 24 to 26 end the whole process (`Assertion failed: (current_nghttp2_memory_) == (0)`) if the native half of a
 * session goes before that of a stream with headers that were refused or did not end. Any client can bring that about,
 * without a credential, and so can a server to which this thread connects
 * (docs/adr/0060-http2-sessions-outlive-their-streams.md).
 *
 * Also removes the listeners of closed streams. An ended stream lives on until the next full collection, because V8
 * treats its native half as alive in all smaller ones, and its listeners would keep the whole call. On appends this was
 * half of the memory that outlived its call.
 */
export function keepSessions(server: Http2Server): void {
  // Node tells nothing of a stream whose first headers are refused.
  server.on('session', keepSession);
  // Diagnostics channels of Node. Subscribed once a thread, however many servers it has.
  for (const name of ['http2.client.stream.start', 'http2.client.stream.close', 'http2.server.stream.close']) {
    unsubscribe(name, onStream);
    subscribe(name, onStream);
  }
}

/** false: this version of Node has the native half elsewhere, so `keepSessions` cannot keep it. */
export function canKeepSessions(): boolean {
  const session = performServerHandshake(new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() }));
  const handle = handleOf(session);
  session.destroy();
  return handle !== undefined;
}

/** No WeakMap: with an entry for each, sessions that have ended would live until the next full collection. */
const isKept = Symbol('kept');
/** Holds a session's native half until that of a stream was collected. */
const collected = new FinalizationRegistry<object>(() => {});

function keepSession(session: Http2Session): void {
  const handle = handleOf(session);
  if (isKept in session || handle === undefined) return;
  Object.defineProperty(session, isKept, { value: true });
  // Node puts off to an immediate what still needs the session, and may do so in an immediate.
  session.once('close', () => setImmediate(() => setImmediate(nothing, handle)));
}

function onStream(message: unknown): void {
  const { stream } = message as { readonly stream: Http2Stream };
  const { session } = stream;
  if (session !== undefined) keepSession(session);
  if (!stream.closed) return;
  setImmediate(release, stream);
  // Only what the other side has not ended can have a second block of headers, and Node leaves only what waits to be
  // written to V8: most calls have ended.
  if (session === undefined || stream.readableEnded || stream.writableLength === 0) return;
  const [handle, sessionHandle] = [handleOf(stream), handleOf(session)];
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

function nothing(_held: object): void {}

function release(stream: Http2Stream): void {
  // A late error without a listener would end the process.
  if (stream.destroyed) stream.removeAllListeners().on('error', nothing);
}
