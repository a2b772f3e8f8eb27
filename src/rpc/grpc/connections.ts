import { constants, type Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { Slab } from '../../runtime/collections/slab.ts';
import { FairShare } from '../../runtime/limits/fair-share.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import { PublicConnections } from '../../runtime/limits/public-connections.ts';
import { StandardStreams } from '../../runtime/limits/standard-streams.ts';
import { isGone } from '../http/socket-state.ts';

/** Bounds of one connection, in bytes. */
export interface GrpcBounds {
  /** Bytes of requests that have begun and not ended. */
  readonly connectionRequestBytes: number;
  /** Bytes of answers that the client has not taken. */
  readonly connectionAnswerBytes: number;
}

/** The share of the node's budget for calls with their unfinished requests, and the share for untaken answers. */
const share = 1 / 4;

export class Connection {
  readonly session: Http2Session;
  readonly slot: number;
  /** Bytes of requests that have begun and not ended. */
  unfinishedBytes = 0;
  answerBytes = 0;
  /** Whole requests that have arrived and are not answered. Bidirectional streams do not count. */
  served = 0;
  /** Calls that were refused because it held too much. Halved every second. */
  refusals = 0;

  constructor(session: Http2Session, connections: Slab<Connection>) {
    this.session = session;
    this.slot = connections.add(this);
  }

  get isServing(): boolean {
    return this.served > 0;
  }

  end(): void {
    if (this.session.destroyed) return;
    this.session.destroy(new Error('the connection holds too much'), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  /**
   * Ends it if its client is gone. Over TLS, a write that waits while the client resets the connection never ends in
   * Node, which reads no further meanwhile.
   */
  endIfGone(): void {
    if (!this.session.destroyed && isGone(this.session.socket as Socket)) this.end();
  }
}

const connectionOf = Symbol('connection');

/**
 * The connections of the gRPC port, and what they hold together. Bounds are checked with each byte. The node's budget
 * gets the sums at each sweep, because its counters are shared by all threads and expensive to update.
 */
export class Connections {
  readonly bounds: GrpcBounds;
  readonly standard = new StandardStreams();
  readonly places: PublicConnections;
  /** The time of the last sweep (monotonic, ms). */
  nowMs: number;
  /** Of methods that the main thread serves, from their headers until the kernel has taken the whole answer. */
  openCalls = 0;
  readonly #all = new Slab<Connection>();
  readonly #memory: MemoryBudget;
  /** Calls with their unfinished requests, and what waits in Node's buffers while streams are paused. */
  readonly #requests: FairShare<Connection>;
  readonly #answers: FairShare<Connection>;
  readonly #answerBytes = { answer: 0, stream: 0 };
  readonly #budgetBytes = { request: 0, answer: 0, stream: 0 };
  #forgotMs: number;

  constructor(bounds: GrpcBounds, connectionsMax: number, memory: MemoryBudget, nowMs = performance.now()) {
    this.nowMs = nowMs;
    this.#forgotMs = nowMs;
    this.bounds = bounds;
    this.places = new PublicConnections(connectionsMax);
    this.#memory = memory;
    const end = (connection: Connection): void => connection.end();
    this.#requests = new FairShare(memory.maxBytes * share, end);
    this.#answers = new FairShare(memory.maxBytes * share, end);
  }

  of(session: Http2Session & { [connectionOf]?: Connection }): Connection {
    let connection = session[connectionOf];
    if (connection === undefined) {
      const added = new Connection(session, this.#all);
      session.on('close', () => this.#all.remove(added.slot));
      this.places.begun(session.socket, added);
      session[connectionOf] = added;
      connection = added;
    }
    return connection;
  }

  /**
   * Adds `bytes`, or releases them if negative. Returns false if all connections together hold too much and this one
   * holds more than its part: its call must be refused.
   */
  request(connection: Connection, bytes: number): boolean {
    this.#requests.add(connection, bytes);
    return bytes <= 0 || this.#requests.makeRoom(connection);
  }

  paused(connection: Connection, bytes: number): void {
    this.#requests.add(connection, bytes);
    if (bytes > 0) this.#requests.endLargestIfFull();
  }

  /** If all hold too much together, the connection that holds most is ended. */
  answer(connection: Connection, kind: 'answer' | 'stream', bytes: number): void {
    connection.answerBytes += bytes;
    this.#answerBytes[kind] += bytes;
    this.#answers.add(connection, bytes);
    if (bytes > 0) this.#answers.endLargestIfFull();
  }

  /** Counts a refused call. A connection with too many is ended. */
  refused(connection: Connection): void {
    connection.refusals += 1;
    if (connection.refusals > limits.grpcRefusalsMax) connection.end();
  }

  updateBudget(): void {
    if (this.nowMs - this.#forgotMs >= 1_000) {
      this.#forgotMs = this.nowMs;
      for (const one of this.#all) {
        one.refusals = Math.floor(one.refusals / 2);
        if (this.#requests.heldBy(one) > 0 || one.answerBytes > 0) one.endIfGone();
      }
    }
    this.#setBudget('request', this.#requests.total);
    this.#setBudget('answer', this.#answerBytes.answer);
    this.#setBudget('stream', this.#answerBytes.stream);
  }

  #setBudget(kind: 'request' | 'answer' | 'stream', bytes: number): void {
    const before = this.#budgetBytes[kind];
    if (before === bytes) return;
    this.#memory.add(kind, bytes);
    this.#memory.release(kind, before);
    this.#budgetBytes[kind] = bytes;
  }
}
