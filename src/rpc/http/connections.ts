import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { FairShare } from '../../runtime/limits/fair-share.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import { HttpConnection } from './connection.ts';
import type { AnswerRules, HttpHandler, HttpResponse } from './response.ts';

/** The property of a socket that holds its HttpConnection. */
const ofSocket = Symbol('connection');
type KnownSocket = Socket & { [ofSocket]?: HttpConnection };

/** How often drain() checks its conditions. */
const drainLookMs = 10;

/** The share of the memory budget that unfinished bodies may hold together. */
const unfinishedShare = 1 / 4;
/** The share of the memory budget that answers may hold before large answers of reads are refused. */
const answerShare = 1 / 2;
/** Above this part of a budget, connections that take no bytes are ended sooner. */
const nearlyFull = 3 / 4;

/** All connections of one HTTP port. */
export class HttpConnections implements Disposable {
  readonly #memory: MemoryBudget;
  readonly #monotonicMs: () => number;
  readonly #rules: AnswerRules;
  readonly #open = new Set<HttpConnection>();
  /**
   * Unfinished bodies. They need no credential to begin and may take seconds, so they have their own share of the
   * budget.
   */
  readonly #unfinished: FairShare<HttpConnection>;
  /** Raw sockets below TLS, from the start of their handshake on. */
  readonly #belowTls = new Set<Socket>();
  readonly #sweep: NodeJS.Timeout;
  readonly #look: NodeJS.Timeout;
  #isDraining = false;

  /** `headers` is a list `name, value, …`; every answer carries them. */
  constructor(memory: MemoryBudget, headers: readonly string[], monotonicMs: () => number) {
    this.#memory = memory;
    this.#unfinished = new FairShare(memory.maxBytes * unfinishedShare, (connection) => connection.abort());
    this.#monotonicMs = monotonicMs;
    this.#rules = {
      memory,
      headers,
      holdUnfinished: (response, bytes) => this.#holdUnfinished(this.#connectionOf(response), bytes),
      releaseUnfinished: (response, bytes) => this.#releaseUnfinished(this.#connectionOf(response), bytes),
      makeRoom: (response, bytes) => this.#makeRoom(this.#connectionOf(response), bytes),
      // While draining, the newest answer is the last one. An earlier answer is not: more requests may be behind its
      // own.
      isLast: (response) => this.#isDraining && this.#connectionOf(response)?.newest === response,
    };
    this.#sweep = setInterval(() => this.#endStalled(), limits.answerSweepMs).unref();
    this.#look = setInterval(() => this.#lookAtAnswers(), limits.answerLookMs).unref();
  }

  add(socket: Socket): void {
    const connection = new HttpConnection(socket, this.#memory, this.#monotonicMs());
    (socket as KnownSocket)[ofSocket] = connection;
    this.#open.add(connection);
    socket.on('close', () => this.#open.delete(connection));
  }

  addBelowTls(socket: Socket): void {
    this.#belowTls.add(socket);
    socket.on('close', () => this.#belowTls.delete(socket));
  }

  /** The headers that every answer carries, as `name, value, …`. */
  get headers(): readonly string[] {
    return this.#rules.headers;
  }

  of(socket: object): HttpConnection | null {
    return (socket as KnownSocket)[ofSocket] ?? null;
  }

  #connectionOf(response: HttpResponse): HttpConnection | null {
    return this.of(response.req.socket);
  }

  #holdUnfinished(connection: HttpConnection | null, bytes: number): boolean {
    if (connection === null) return true;
    this.#unfinished.add(connection, bytes);
    if (this.#unfinished.makeRoom(connection)) return true;
    this.#unfinished.add(connection, -bytes);
    return false;
  }

  #releaseUnfinished(connection: HttpConnection | null, bytes: number): void {
    if (connection !== null) this.#unfinished.add(connection, -bytes);
  }

  /** Returns the request listener that serves requests within the bounds of their connections. */
  listener(serve: HttpHandler): HttpHandler {
    return (request, response) => {
      response.rules = this.#rules;
      this.of(request.socket)?.take(request, response, serve);
    };
  }

  /**
   * Ends connections whose answers the kernel does not take: all of them after answerStallMs, and sooner those that
   * hold most of a nearly full budget.
   */
  #endStalled(): void {
    for (const connection of this.#stalled(this.#open, limits.answerStallMs)) connection.abort();
    if (!this.#isNearlyFull) return;
    const holding = [...this.#open].filter((one) => one.heldBytes > 0);
    for (const connection of this.#stalled(holding, limits.answerStallFullMs)) {
      connection.abort();
      if (!this.#isNearlyFull) return;
    }
  }

  /**
   * While the budget is nearly full, notes when the kernel last took bytes of answers. Sweeps alone are too coarse for
   * the shorter time limits.
   */
  #lookAtAnswers(): void {
    if (!this.#isNearlyFull) return;
    const nowMs = this.#monotonicMs();
    for (const connection of this.#open) if (connection.heldAnswerBytes > 0) connection.stalledMs(nowMs);
  }

  /**
   * Answers are refused beyond their own share of the budget, so they alone never fill three quarters of the whole.
   * Their share is checked as well.
   */
  get #isNearlyFull(): boolean {
    const bytes = this.#memory.maxBytes * nearlyFull;
    return this.#memory.heldBytes() > bytes || this.#memory.heldBytes('answer') > bytes * answerShare;
  }

  /**
   * Whether answers may hold `bytes` more. If there is no room, a connection that holds more than its equal part is
   * refused. Otherwise other connections that take no bytes are ended: a client that does not read must not keep others
   * from reading.
   */
  #makeRoom(connection: HttpConnection | null, bytes: number): boolean {
    const maxBytes = this.#memory.maxBytes * answerShare;
    const hasRoom = (): boolean => this.#memory.heldBytes('answer') + bytes <= maxBytes;
    if (hasRoom()) return true;
    const holding = [...this.#open].filter((one) => one.heldAnswerBytes > 0);
    if (connection === null || connection.heldAnswerBytes * holding.length > maxBytes) return false;
    const others = holding.filter((one) => one !== connection);
    for (const other of this.#stalled(others, limits.answerStallRoomMs)) {
      other.abort();
      if (hasRoom()) return true;
    }
    return false;
  }

  /**
   * Connections of which the kernel has taken nothing for at least `leastMs`. Sorted by held bytes times stalled time,
   * largest first.
   */
  #stalled(connections: Iterable<HttpConnection>, leastMs: number): HttpConnection[] {
    const nowMs = this.#monotonicMs();
    const stalled: { readonly connection: HttpConnection; readonly weight: number }[] = [];
    for (const connection of connections) {
      const ms = connection.stalledMs(nowMs);
      if (ms >= leastMs) stalled.push({ connection, weight: ms * connection.heldBytes });
    }
    return stalled.sort((left, right) => right.weight - left.weight).map(({ connection }) => connection);
  }

  /**
   * Closes all connections without a reset. For drainIdleMs, requests are still answered, with `connection: close`.
   * Running requests get at most `graceMs`. Then each idle connection gets its FIN, and what its client still sends is
   * read for drainLingerMs. With `graceMs` 0 all connections are destroyed at once.
   */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    const endMs = performance.now() + graceMs;
    const until = async (isDone: () => boolean, ms: number): Promise<void> => {
      const lateMs = Math.min(performance.now() + ms, endMs);
      while (!isDone() && performance.now() < lateMs) await delay(drainLookMs);
    };
    await until(() => this.#open.size === 0, limits.drainIdleMs);
    await until(() => this.#isIdle, graceMs);
    for (const connection of this.#open) if (connection.isIdle) connection.end();
    await until(() => this.#open.size === 0, limits.drainLingerMs);
    for (const { socket } of this.#open) socket.destroy();
    for (const socket of this.#belowTls) socket.destroy();
  }

  get #isIdle(): boolean {
    for (const connection of this.#open) if (!connection.isIdle) return false;
    return true;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#sweep);
    clearInterval(this.#look);
  }
}
