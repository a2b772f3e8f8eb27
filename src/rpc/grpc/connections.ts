import { constants, type Http2Session } from 'node:http2';
import { Slab } from '../../domain/slab.ts';
import { limits } from '../../limits.ts';
import type { MemoryBudget } from '../../runtime/memory-budget.ts';

/** What one connection of the gRPC port may hold, in bytes. */
export interface GrpcBounds {
  /** Of requests that have begun and not ended. */
  readonly connectionRequestBytes: number;
  /** Of answers that its client has not taken. */
  readonly connectionAnswerBytes: number;
}

/** Of the node's budget, what calls with their unfinished requests may hold together, and what untaken answers may. */
const share = 1 / 4;

/** One HTTP/2 connection, and what the node holds for it. */
export class Connection {
  readonly session: Http2Session;
  readonly slot: number;
  /** Of calls and their unfinished requests. */
  requestBytes = 0;
  /** Of requests that have begun and not ended. */
  unfinishedBytes = 0;
  /** Of requests that wait unread in Node's buffers while their streams are paused. Looked up at each sweep. */
  pausedBytes = 0;
  answerBytes = 0;
  /** How many of its calls were refused because it held too much. */
  refusals = 0;
  /** Of health and reflection, from the oldest on. */
  readonly standard = new Set<StandardStream>();

  constructor(session: Http2Session, connections: Slab<Connection>) {
    this.session = session;
    this.slot = connections.add(this);
  }

  /** Ends it and all its calls at once. */
  end(): void {
    if (this.session.destroyed) return;
    this.session.destroy(new Error('the connection holds too much'), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

/** A stream of health or reflection. */
export interface StandardStream {
  readonly connection: Connection;
  /** Ends it at once. */
  displace(): void;
}

const noHolders: Holders = { atMs: Number.NaN, largest: null, holding: 0 };

/** A key that sessions are asked for their connection by. */
const connectionOf = Symbol('connection');

/**
 * The connections of the gRPC port and what they hold together. Bounds are checked with each byte. The node's budget is
 * told the sums at each sweep: counters that all threads share cost more than most calls hold.
 */
export class Connections {
  readonly bounds: GrpcBounds;
  /** Of the last sweep, monotonic. */
  nowMs: number;
  readonly #all = new Slab<Connection>();
  readonly #memory: MemoryBudget;
  readonly #shareBytes: number;
  readonly #heldBytes = { request: 0, answer: 0, stream: 0 };
  readonly #toldBytes = { request: 0, answer: 0, stream: 0 };
  #pausedBytes = 0;
  /** From the oldest on. */
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
   * Counts bytes of requests; negative ones are held no more. False: all connections together hold too much, and this
   * one more than its part of it, so that its call is to be refused.
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

  /** Counts what waits in buffers of Node's. */
  paused(connection: Connection, bytes: number): void {
    connection.pausedBytes += bytes;
    this.#pausedBytes += bytes;
    if (bytes > 0 && this.#heldBytes.request + this.#pausedBytes > this.#shareBytes)
      this.#holders('requestBytes').largest?.end();
  }

  /** Counts bytes of answers. Too many together end the connection that has left most of them. */
  answer(connection: Connection, kind: 'answer' | 'stream', bytes: number): void {
    connection.answerBytes += bytes;
    this.#heldBytes[kind] += bytes;
    if (bytes > 0 && this.#heldBytes.answer + this.#heldBytes.stream > this.#shareBytes)
      this.#holders('answerBytes').largest?.end();
  }

  /**
   * Streams that need no credential must not take the places of others: where there are too many, of the connection or
   * of the port, the oldest one ends.
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

  /** Notes that a call was refused because its connection holds too much; one that goes on like that is ended. */
  refused(connection: Connection): void {
    connection.refusals += 1;
    if (connection.refusals > limits.grpcRefusalsMax) connection.end();
  }

  /** Tells the node's budget what is held now. */
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
   * The connection that holds most, so that those who hold little need not be refused, and how many hold anything.
   * Looked up once a sweep, and again when that connection holds nothing any more: it is asked for with each byte that
   * comes.
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
  /** The sweep. */
  readonly atMs: number;
  readonly largest: Connection | null;
  readonly holding: number;
}

function bytesOf({ requestBytes, pausedBytes, answerBytes }: Connection, kind: HeldKind): number {
  return kind === 'answerBytes' ? answerBytes : requestBytes + pausedBytes;
}
