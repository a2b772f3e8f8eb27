import { commandTimeoutMs } from './actors/bounds.ts';

/** Every bound of the transports, with its unit in its name and the reason beside it. Bounds of actors and stores stand with those. */
export const limits = Object.freeze({
  /** decisions.md, section 3: the largest request body, of REST, and of a message of gRPC and Connect, unpacked. */
  requestBodyMaxBytes: 1024 * 1024,
  /** gRPC messages up to this are read, so that those beyond requestBodyMaxBytes get an answer with our error details. */
  grpcReceiveMaxBytes: 1024 * 1024 + 64 * 1024,
  /** A page of events ends at 2 MiB of JSON (decisions.md, section 3); one event, its signed form and the frame come on top. */
  grpcSendMaxBytes: 8 * 1024 * 1024,

  /** How long a unary call may take where its caller names no shorter time (architecture.md). */
  callTimeoutMs: commandTimeoutMs,
  /** A sandbox run waits for its turn and for webhook deliveries; nothing sound streams longer than this through HTTP. */
  serverStreamTimeoutMs: 10 * 60_000,
  /** How much later than its deadline a handler may answer, before the transport answers for it. */
  deadlineGraceMs: 1_000,
  /** How often running calls are looked over for passed deadlines: what a signal may be late by. */
  deadlineSweepMs: 50,

  /** All headers of a request together: an API key, a signature and a delivery chain of 16 take some 3 KiB. */
  headersMaxBytes: 16 * 1024,
  /** Browsers behind proxies send some 40. */
  headersMaxCount: 100,
  /** From the start of a connection or request to the end of its headers: slow headers are an attack. */
  headersTimeoutMs: 10_000,
  /** From the start of a request to the end of its body: 1 MiB at 35 kB/s. */
  requestTimeoutMs: 30_000,
  /** Longer than the idle time of common load balancers (60 s), so that they close first and no request meets a closed socket. */
  keepAliveTimeoutMs: 65_000,
  /** An idle connection is kept so much longer than its client was told: clients look at their clocks a second or two late. */
  keepAliveBufferMs: 5_000,
  /** How often Node looks for connections past the two times above. */
  connectionsCheckMs: 5_000,
  /** From the start of a connection to the end of its TLS handshake, on both public ports. */
  tlsHandshakeTimeoutMs: 10_000,
  /** What a browser remembers that this host speaks TLS only: a year, as preload lists ask. */
  hstsMaxAgeS: 365 * 24 * 60 * 60,
  /** Requests of one HTTP/1.1 connection that are served at a time. */
  httpUnderWayMax: 4,
  /**
   * Further requests of one connection that wait, each some 4 kB. Node parses all that came in one read (64 KiB), so a connection that
   * is paused may still bring this many; one that brings more ends. Clients that pipeline send a few at a time.
   */
  httpWaitingMax: 60,
  /** How often connections are looked over for answers that nobody takes. */
  answerSweepMs: 1_000,
  /** An answer of which the kernel takes nothing for so long ends with its connection: within 30 s, the sweep included. */
  answerStallMs: 25_000,
  /** After this those that hold most end, while three quarters of the budget, or of its half for answers, are held. */
  answerStallFullMs: 3_000,
  /**
   * After this they end where a large read would be refused otherwise. A client that reads takes something sooner.
   * Younger ones that fill the room of 128 MiB are 256 pages of 2 MiB a second.
   */
  answerStallRoomMs: 250,
  /** How often answers are looked at meanwhile, so that it is known when the kernel last took some of them. */
  answerLookMs: 100,
  /** An answer of a read above this is refused where answers hold half of the memory budget, or it has no room. */
  smallAnswerMaxBytes: 64 * 1024,
  /** A stopping node leaves idle connections open for so long: a request that is on its way is answered, with `connection: close`. */
  drainIdleMs: 500,
  /** How long a connection that the node has ended waits for the client's end: what arrives meanwhile causes no reset. */
  drainLingerMs: 500,
  /** A port holds no more connections than this; each idle one costs some 20 kB. */
  connectionsMax: 20_000,
  /** An unread body of at most this is dropped, and its connection kept. */
  dropMaxBytes: 64 * 1024,
  /** How much of a refused body is read and dropped, so that the caller gets to see the answer before the connection ends. */
  lingerMaxBytes: 4 * 1024 * 1024,
  lingerMaxMs: 2_000,

  /** Calls at once on one HTTP/2 connection: a bidirectional stream counts as one. */
  grpcStreamsMax: 1_000,
  /** What one HTTP/2 connection may hold of headers and unsent data: bounds rapid resets and floods of settings. */
  grpcSessionMemoryMb: 128,
  /** A quiet peer is asked whether it lives, and dropped when it does not say so. */
  grpcKeepaliveMs: 60_000,
  grpcKeepaliveTimeoutMs: 20_000,
  /** A connection without any call is closed; channels open a new one by themselves. */
  grpcIdleMs: 30 * 60_000,

  /** From a call's headers to the end of its message, or from the start of a stream's message to its end. */
  grpcMessageTimeoutMs: 30_000,
  /** A message that has not ended by then, or is larger, is read on only when its caller is known and has a call left in its rate. */
  grpcUnadmittedMs: 150,
  grpcUnadmittedBytes: 64 * 1024,
  /** Streams of health and reflection on the whole port. They need no credential and may stay open, so the oldest one ends for a new one. */
  grpcStandardStreamsMax: 256,
  /** Of those, on one connection. */
  grpcConnectionStandardStreamsMax: 16,
  /** Messages to methods of health and reflection, which hold names. */
  grpcStandardMessageMaxBytes: 16 * 1024,
  /** An answer of which nothing is taken for so long ends with its connection, as does an answered call still open. */
  grpcAnswerTimeoutMs: 30_000,
  /** How long a caller may take to end its request after it was answered; then its stream is reset. */
  grpcAnsweredLingerMs: 1_000,
  /** A connection ends when so many of its calls were refused because it held too much; each second half of them is forgotten. */
  grpcRefusalsMax: 100,
  /** Larger answers are handed to HTTP/2 in pieces of this size, so that it is seen whether they are taken. */
  grpcAnswerPieceBytes: 64 * 1024,
  /** What a call takes by itself, from its headers until its stream closes: objects of Node, grpc-js and the service. Measured: 21 KiB. */
  grpcCallBytes: 16 * 1024,
  /** Of the headers of a call, what grpcCallBytes has room for: what is beyond counts by itself. */
  grpcCallHeaderBytes: 1024,
  /** What grpc-js takes for a message by itself while it waits, however short it is. */
  grpcMessageBytes: 512,
  /**
   * What the port's thread may have posted and the main thread not handled, in KiB, where each frame counts as 4 more
   * than it has: 1,000 small ones, some 50 ms of work. Then the thread reads no more until the main thread has caught up,
   * for at most grpcBacklogWaitMs in a turn of its event loop.
   */
  grpcBacklogKib: 4 * 1024,
  grpcBacklogWaitMs: 250,
  /** How long the main thread begins what frames ask for before it does other work. */
  grpcFrameSliceMs: 5,
  /** How often calls are looked over for the times above. */
  grpcSweepMs: 100,

  /** How often a stream's credential is checked again: a revoked key is refused everywhere within a second (decisions.md, section 4). */
  streamCredentialCheckMs: 500,
  /** Requests of a stream that were read and not yet taken by the handler; then the connection is not read on. */
  streamReadAheadMax: 64,
  /** The same in bytes: beyond it the next request is not read. */
  streamReadAheadBytes: 256 * 1024,
  /** Answers of a stream that HTTP/2 has not taken yet; then the handler waits. */
  streamSendAheadBytes: 64 * 1024,
  /** How long a stream whose credential ended may take to hand out the outcomes of what it had taken. */
  streamLastOutcomesMs: 5_000,

  /** decisions.md, section 1. */
  idempotencyStoredMs: 24 * 60 * 60_000,
  /** decisions.md, section 4: how far X-Timestamp of a signed entity request may be off. */
  entityRequestSkewMs: 300_000,

  /** Callers whose rate is remembered; the ones not seen for longest are forgotten, which lets them start with a full bucket. */
  rateLimitKeysMax: 100_000,

  /**
   * A read counts as one more call for each of so many events, lines or records examined, signatures verified, characters read. One reader
   * that takes the largest pages one after another stays within the default rate.
   */
  readEventsPerCall: 500,
  readSignaturesPerCall: 50,
  readCharsPerCall: 1024 * 1024,

  /** How long a stopping node finishes what runs (cluster.md: exit 0 within 20 s). */
  stopGraceMs: 10_000,
} as const);
