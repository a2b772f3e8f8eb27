import { constants, type Http2Session } from 'node:http2';
import { Slab } from '../../runtime/collections/slab.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';

/** What one connection of the gRPC port may hold, in bytes. */
export interface GrpcBounds {
  /** Bytes of requests that have begun and not ended. */
  readonly connectionRequestBytes: number;
  /** Bytes of answers that the client has not taken. */
  readonly connectionAnswerBytes: number;
}

/**
 * The share of the node's budget that calls with their unfinished requests may hold together, and that untaken answers
 * may hold together.
 */
const share = 1 / 4;

/** One HTTP/2 connection, and what the node holds for it. */
export class Connection {
  readonly session: Http2Session;
  readonly slot: number;
  /** Bytes of calls and their unfinished requests. */
  requestBytes = 0;
  /** Bytes of requests that have begun and not ended. */
  unfinishedBytes = 0;
  /** Bytes of requests that wait in Node's buffers while their streams are paused. Updated at each sweep. */
  pausedBytes = 0;
  answerBytes = 0;
  /** How many of its calls were refused because it held too much. Halved every second. */
  refusals = 0;
  /** Streams of health and reflection, oldest first. */
  readonly standard = new Set<StandardStream>();

  constructor(session: Http2Session, connections: Slab<Connection>) {
    this.session = session;
    this.slot = connections.add(this);
  }

  /** Ends the connection and all its calls at once. */
  end(): void {
    if (this.session.destroyed) return;
    this.session.destroy(new Error('the connection holds too much'), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

/** A stream of health or reflection. */
interface StandardStream {
  readonly connection: Connection;
  /** Ends the stream at once. */
  displace(): void;
}

const noHolders: Holders = { atMs: Number.NaN, largest: null, holding: 0 };

/** The property of a session that holds its Connection. */
const connectionOf = Symbol('connection');

/**
 * The connections of the gRPC port, and what they hold together. Bounds are checked with each byte. The node's budget
 * gets the sums only at each sweep, because its counters are shared by all threads and expensive to update.
 */
export class Connections {
  readonly bounds: GrpcBounds;
  /** The time of the last sweep (monotonic, ms). */
  nowMs: number;
  readonly #all = new Slab<Connection>();
  readonly #memory: MemoryBudget;
  readonly #shareBytes: number;
  readonly #heldBytes = { request: 0, answer: 0, stream: 0 };
  readonly #toldBytes = { request: 0, answer: 0, stream: 0 };
  #pausedBytes = 0;
  /** Oldest first. */
  readonly #standard = new Set<StandardStream>();
  #forgotMs: number;
  readonly #found: Record<HeldKind, Holders> = { requestBytes: noHolders, answerBytes: noHolders };

  constructor(bounds: GrpcBounds, memory: MemoryBudget, nowMs = performance.now()) {
    this.nowMs = nowMs;
    this.#forgotMs = nowMs;
    this.bounds = bounds;
    this.#memory = memory;
    this.#shareBytes = memory.maxBytes * share;
  }

  of(session: Http2Session & { [connectionOf]?: Connection }): Connection {
    let connection = session[connectionOf];
    if (connection === undefined) {
      const added = new Connection(session, this.#all);
      session.on('close', () => this.#all.remove(added.slot));
      session[connectionOf] = added;
      connection = added;
    }
    return connection;
  }

  /**
   * Adds `bytes` to what requests hold; a negative number is released. Returns false if all connections together hold
   * too much and this one holds more than its part: its call must be refused.
   */
  request(connection: Connection, bytes: number): boolean {
    connection.requestBytes += bytes;
    this.#heldBytes.request += bytes;
    if (bytes <= 0 || this.#heldBytes.request + this.#pausedBytes <= this.#shareBytes) return true;
    const { largest, holding } = this.#holders('requestBytes');
    if (bytesOf(connection, 'requestBytes') > this.#shareBytes / holding) return false;
    largest?.end();
    return true;
  }

  /** Adds `bytes` to what waits in Node's buffers. */
  paused(connection: Connection, bytes: number): void {
    connection.pausedBytes += bytes;
    this.#pausedBytes += bytes;
    if (bytes > 0 && this.#heldBytes.request + this.#pausedBytes > this.#shareBytes)
      this.#holders('requestBytes').largest?.end();
  }

  /** Adds `bytes` to what answers hold. If all hold too much together, the connection that holds most is ended. */
  answer(connection: Connection, kind: 'answer' | 'stream', bytes: number): void {
    connection.answerBytes += bytes;
    this.#heldBytes[kind] += bytes;
    if (bytes > 0 && this.#heldBytes.answer + this.#heldBytes.stream > this.#shareBytes)
      this.#holders('answerBytes').largest?.end();
  }

  /**
   * Streams that need no credential must not use up the places of other calls. If there are too many, on the connection
   * or on the port, the oldest one ends.
   */
  addStandard(stream: StandardStream): void {
    const { standard } = stream.connection;
    standard.add(stream);
    this.#standard.add(stream);
    if (standard.size > limits.grpcConnectionStandardStreamsMax) this.#displaceOldest(standard);
    else if (this.#standard.size > limits.grpcStandardStreamsMax) this.#displaceOldest(this.#standard);
  }

  #displaceOldest(streams: ReadonlySet<StandardStream>): void {
    for (const oldest of streams) {
      this.removeStandard(oldest);
      oldest.displace();
      return;
    }
  }

  removeStandard(stream: StandardStream): void {
    stream.connection.standard.delete(stream);
    this.#standard.delete(stream);
  }

  /**
   * Counts a call that was refused because its connection holds too much. A connection with too many refusals is ended.
   */
  refused(connection: Connection): void {
    connection.refusals += 1;
    if (connection.refusals > limits.grpcRefusalsMax) connection.end();
  }

  /** Updates the node's budget with what is held now. */
  tell(): void {
    if (this.nowMs - this.#forgotMs >= 1_000) {
      this.#forgotMs = this.nowMs;
      for (const one of this.#all) one.refusals = Math.floor(one.refusals / 2);
    }
    this.#tell('request', this.#heldBytes.request + this.#pausedBytes);
    this.#tell('answer', this.#heldBytes.answer);
    this.#tell('stream', this.#heldBytes.stream);
  }

  #tell(kind: 'request' | 'answer' | 'stream', bytes: number): void {
    const told = this.#toldBytes[kind];
    if (told === bytes) return;
    this.#memory.add(kind, bytes);
    this.#memory.release(kind, told);
    this.#toldBytes[kind] = bytes;
  }

  /**
   * Returns the connection that holds most and how many hold anything. The largest one is ended so that connections
   * that hold little need not be refused. The result is cached until the next sweep, or until that connection holds
   * nothing: it is needed with each byte that arrives.
   */
  #holders(kind: HeldKind): Holders {
    const found = this.#found[kind];
    if (found.atMs === this.nowMs && found.largest !== null && bytesOf(found.largest, kind) > 0) return found;
    let largest: Connection | null = null;
    let holding = 0;
    for (const one of this.#all) {
      if (bytesOf(one, kind) > 0) holding += 1;
      if (largest === null || bytesOf(one, kind) > bytesOf(largest, kind)) largest = one;
    }
    this.#found[kind] = { atMs: this.nowMs, largest, holding };
    return this.#found[kind];
  }
}

type HeldKind = 'requestBytes' | 'answerBytes';

interface Holders {
  /** The time of the sweep. */
  readonly atMs: number;
  readonly largest: Connection | null;
  readonly holding: number;
}

function bytesOf({ requestBytes, pausedBytes, answerBytes }: Connection, kind: HeldKind): number {
  return kind === 'answerBytes' ? answerBytes : requestBytes + pausedBytes;
}
