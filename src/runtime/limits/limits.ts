/**
 * All bounds of the transports, with their units in their names and their reasons beside them. Bounds of actors and
 * stores are in their own files. test/unit/runtime/bounds.test.ts checks how they relate.
 */
export const limits = Object.freeze({
  /** The largest request body of REST, and the largest message of gRPC and Connect, decompressed. */
  requestBodyMaxBytes: 1024 * 1024,
  /**
   * The most fields of a serialized request, known or not. No request has half as many. They are decoded on the main
   * thread, where 1 MiB of short ones takes 100 ms.
   */
  requestFieldsMax: 512,
  /** Larger than requestBodyMaxBytes, so that messages beyond that get an answer with our error details. */
  grpcReceiveMaxBytes: 1024 * 1024 + 64 * 1024,
  /** A page of events ends at 2 MiB of JSON; one more event, its signed form and the frame are added. */
  grpcSendMaxBytes: 8 * 1024 * 1024,

  /** How long a unary call may take if its caller sets no shorter time. */
  callTimeoutMs: 10_000,
  /** A sandbox run waits for a place and for webhooks. No healthy call streams longer than this through HTTP. */
  serverStreamTimeoutMs: 10 * 60_000,
  /** If the caller of a live stream takes nothing for this long, the stream ends. */
  liveStallMs: 60_000,
  /** The connection of a caller that takes nothing is ended sooner. A live stream that waited this long was stalled. */
  liveStalledLeastMs: 20_000,
  /** After its deadline. Then the transport answers for the handler. */
  deadlineGraceMs: 1_000,
  /** How often deadlines are checked. An abort signal may be late by this much. */
  deadlineSweepMs: 50,

  /** All headers of a request together. An API key, a signature and a delivery chain of 16 take some 3 KiB. */
  headersMaxBytes: 16 * 1024,
  /** Browsers behind proxies send some 40. */
  headersMaxCount: 100,
  /** From the start of a connection or request to the end of its headers: slow headers are an attack. */
  headersTimeoutMs: 10_000,
  /** From the start of a request to the end of its body: 1 MiB at 35 kB/s. */
  requestTimeoutMs: 30_000,
  /** Longer than common load balancers (60 s), so that they close first and no request meets a closed socket. */
  keepAliveTimeoutMs: 65_000,
  /** Kept this much longer than the client was told, because clients check a second or two late. */
  keepAliveBufferMs: 5_000,
  /** How often Node checks the two request times above. */
  connectionsCheckMs: 5_000,
  /** From the start of a connection, on both public ports. */
  tlsHandshakeTimeoutMs: 10_000,
  /** How long a browser remembers that this host uses TLS only: a year, as preload lists require. */
  hstsMaxAgeS: 365 * 24 * 60 * 60,
  /** Requests of one HTTP/1.1 connection at once. */
  httpUnderWayMax: 4,
  /**
   * Further requests of one connection that wait, each some 4 kB. A connection that brings more is ended. Node parses
   * everything that came in one read (64 KiB), so a paused connection may still bring this many.
   */
  httpWaitingMax: 60,
  /** How often unread answers are looked for. */
  answerSweepMs: 1_000,
  /** If the kernel, or the client behind it, takes nothing of an answer for this long, the connection is ended. */
  answerStallMs: 25_000,
  /** The same for connections that hold most, while the budget, or its half for answers, is three quarters full. */
  answerStallFullMs: 3_000,
  /**
   * The same for connections whose memory a large read needs. A client that reads takes something sooner. To fill the
   * 128 MiB for answers with younger ones takes 256 pages of 2 MiB a second.
   */
  answerStallRoomMs: 250,
  /** How often the connections that serve requests are asked whether their clients take anything. */
  answerLookMs: 100,
  /** How often the kernel is asked whether answers are read: some 0.1 s of a core if the host has 20,000 sockets. */
  answerUnreadLookMs: 5_000,
  /** A larger answer of a read is refused if answers hold half of the memory budget, or if there is no room for it. */
  smallAnswerMaxBytes: 64 * 1024,
  /** JSON up to this size is sent as it is: compressing it saves no packet. */
  compressedMinBytes: 1024,
  /**
   * Answers that are compressed at once, in libuv's four threads, which files and names share. Others are sent as they
   * are.
   */
  compressionsMax: 8,
  /** The most that gzip or brotli, at the settings of compression.ts, hold beside input and output. */
  compressorBytes: 1024 * 1024,
  /** How long a stopping node keeps idle connections: a request in transit gets `connection: close`. */
  drainIdleMs: 500,
  /** How long an ended connection waits for its client's end: data that arrives meanwhile causes no reset. */
  drainLingerMs: 500,
  /** How long a process that exits at once waits for the thread of the gRPC port to close. */
  grpcExitMs: 1_000,
  /** An unread body up to this size is dropped, and its connection kept. */
  dropMaxBytes: 64 * 1024,
  /** A refused body is read up to this, so that the caller receives the answer before the connection ends. */
  lingerMaxBytes: 4 * 1024 * 1024,
  lingerMaxMs: 2_000,

  /** Calls at once on one HTTP/2 connection. A bidirectional stream counts as one. */
  grpcStreamsMax: 1_000,
  /** Of one HTTP/2 connection. Bounds rapid resets and floods of settings. */
  grpcSessionMemoryMb: 128,
  /** A quiet peer gets a ping; without an answer its connection is closed. */
  grpcKeepaliveMs: 60_000,
  grpcKeepaliveTimeoutMs: 20_000,
  /** A connection without calls is closed. Channels open a new one. */
  grpcIdleMs: 30 * 60_000,

  /** From a call's headers to the end of its message, or from the start of a stream's message to its end. */
  grpcMessageTimeoutMs: 30_000,
  /** A longer or larger message is read on only if its caller is known and has a call left in its rate. */
  grpcUnadmittedMs: 150,
  grpcUnadmittedBytes: 64 * 1024,
  /**
   * Streams of health and reflection on a port. They need no credential, so the oldest one is ended for a new one.
   */
  standardStreamsMax: 256,
  /** For one connection. */
  connectionStandardStreamsMax: 16,
  /** How long a stream of reflection on the HTTP port may take. Tools ask within seconds. */
  httpReflectionMaxMs: 60_000,
  /** Messages to methods of health and reflection. They only hold names. */
  grpcStandardMessageMaxBytes: 16 * 1024,
  /** If nothing of an answer is taken for this long, or an answered call stays open, its connection is ended. */
  grpcAnswerTimeoutMs: 30_000,
  /** After the forced end of a connection, its last bytes may take this long. Then the socket is destroyed. */
  grpcEndedSessionMs: 1_000,
  /** The same after an orderly end. */
  grpcClosedSessionMs: 30_000,
  /** How long after its answer a request may take to end. Then the stream is reset. */
  grpcAnsweredLingerMs: 1_000,
  /** A connection is ended after this many refused calls. Each second, half of them are forgotten. */
  grpcRefusalsMax: 100,
  /** Larger answers go to HTTP/2 in pieces, to see whether they are taken. */
  grpcAnswerPieceBytes: 64 * 1024,
  /**
   * What a call takes itself, until its stream closes. Measured: 21 KiB, and calls that end and begin anew leave gaps
   * in malloc's pools. Under an attack with calls whose answers nobody takes, 16 KiB let the process grow to 557 MiB,
   * of which 300 were left after a minute; with 32 KiB it is 451 and 282.
   */
  grpcCallBytes: 32 * 1024,
  /** Bytes of a call's headers that grpcCallBytes includes. */
  grpcCallHeaderBytes: 1024,
  /** What grpc-js takes for each waiting message, however short. */
  grpcMessageBytes: 512,
  /**
   * KiB that the port's thread has posted and the main thread not handled; a frame counts 4 KiB more than its size:
   * 1,000 small frames, some 50 ms of work. Beyond it the thread stops reading, for at most grpcBacklogWaitMs at a
   * time.
   */
  grpcBacklogKib: 4 * 1024,
  grpcBacklogWaitMs: 250,
  /** How long the main thread handles frames before it does other work. */
  grpcFrameSliceMs: 5,
  /** How often calls are checked for the times above. */
  grpcSweepMs: 100,

  /** A revoked key must be refused everywhere within a second. */
  streamCredentialCheckMs: 500,
  /** Then a check that hangs is given up for the next one. */
  streamCredentialCheckMaxMs: 2_000,
  /** A stream whose credential was not found valid for so long ends. */
  streamCredentialUnknownMs: 30_000,
  /** Requests read and not taken by the handler. Beyond it the connection is not read. */
  streamReadAheadMax: 64,
  /** The same in bytes. Beyond it the next request is not read. */
  streamReadAheadBytes: 256 * 1024,
  /** Answers that HTTP/2 has not taken. Beyond it the handler waits. */
  streamSendAheadBytes: 64 * 1024,
  /**
   * Ledgers whose names an append stream keeps for its access records, beside those of its open events. Then it leaves
   * their records and forgets them.
   */
  streamLedgersMax: 256,
  /** The longest wait of a stream behind an event that its rate refused: refusals take time of the main thread too. */
  streamRateWaitMs: 1_000,
  /** For the outcomes of requests that a stream had taken when its credential ended. */
  streamLastOutcomesMs: 5_000,

  /** How often a follower gets a heartbeat. Proxies close connections that are quiet for 30 or 60 s. */
  followHeartbeatMs: 15_000,
  /** How often a stream of events leaves a record in the access history while it delivers. */
  followRecordEveryMs: 60_000,
  /** Events of followed ledgers that a node keeps in memory, so that all followers share what was read and encoded. */
  followPagesMaxBytes: 32 * 1024 * 1024,

  /** How long an idempotency key and its stored answer count. */
  idempotencyStoredMs: 24 * 60 * 60_000,
  /** How far X-Timestamp of a signed entity request may be off. */
  entityRequestSkewMs: 300_000,

  /** Callers whose rate is remembered. Those not seen for longest are forgotten, and start with a full bucket. */
  rateLimitKeysMax: 100_000,

  /**
   * A read counts as one more call for each of so many events, lines, records or keys, verified signatures, and
   * characters. One reader that takes the largest pages one after another stays within the default rate.
   */
  readEventsPerCall: 500,
  readSignaturesPerCall: 50,
  readCharsPerCall: 1024 * 1024,

  /**
   * A request counts as one more call for each of so many parts to read (json-parts.ts): JSON values, above all. They
   * are read on the main thread, where 1 MiB of short ones takes some 40 ms. Events and records seldom have more.
   */
  requestPartsPerCall: 50,
  /** Of a request without a credential. Its metadata has 16 KiB at most, in which a text `1.,1.,` has 27,300 parts. */
  anonymousPartsMax: 28_000,
  anonymousRequestMaxBytes: 64 * 1024,

  /** How long a stopping node waits for running calls. */
  stopGraceMs: 10_000,
} as const);
