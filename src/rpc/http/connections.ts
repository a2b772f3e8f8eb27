import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { FairShare } from '../../runtime/limits/fair-share.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import { PublicConnections } from '../../runtime/limits/public-connections.ts';
import { HttpConnection } from './connection.ts';
import type { AnswerRules, HttpHandler, HttpResponse } from './response.ts';
import { unsentBytes } from './socket-state.ts';

const drainLookMs = 10;

/** The share of the memory budget that unfinished bodies may hold together. */
const unfinishedShare = 1 / 4;
/** The share of the memory budget that answers may hold before large answers of reads are refused. */
const answerShare = 1 / 2;
/** Above this part of a budget, connections that take no bytes are ended sooner. */
const nearlyFull = 3 / 4;
/** What a node holds for long, and what no end of an HTTP connection frees. */
const othersKinds = ['stream', 'queue', 'peer'] as const;
/** Inodes of connections that one look asks the system for: each takes some 20 µs of the thread. */
const inodesAtOnce = 2_500;
/** A sweep may come some milliseconds early or late. It must not take one more sweep for that. */
const stallMs = limits.answerStallMs - limits.answerSweepMs / 2;
const unreadLookMs = limits.answerUnreadLookMs - limits.answerSweepMs / 2;

/** All connections of one HTTP port. */
export class HttpConnections implements AnswerRules, Disposable {
  readonly memory: MemoryBudget;
  readonly headers: readonly string[];
  readonly #monotonicMs: () => number;
  readonly #places: PublicConnections;
  readonly #open = new Map<object, HttpConnection>();
  /** Those of them with answers that are under way, or that the client may not have taken. Idle ones cost no time. */
  readonly #answering = new Set<HttpConnection>();
  /** Unfinished bodies need no credential and may take seconds, so they have their own share of the budget. */
  readonly #unfinished: FairShare<HttpConnection>;
  readonly #sweep: NodeJS.Timeout;
  readonly #look: NodeJS.Timeout;
  /** The listeners of all sockets: a connection would keep each closure of its own. */
  readonly #listeners: { readonly resume: (this: Socket) => void; readonly close: (this: Socket) => void };
  #isDraining = false;
  /** When the look timer last ran (ms of performance.now()), and how often it ran in time since it was last late. */
  #lookedMs = performance.now();
  #looksInTime = 0;
  /** When the kernel may be asked for unread answers: never while it is being asked. */
  #nextUnreadLookMs = 0;

  constructor(memory: MemoryBudget, headers: readonly string[], connectionsMax: number, monotonicMs: () => number) {
    this.memory = memory;
    this.#places = new PublicConnections(connectionsMax);
    this.headers = headers;
    this.#monotonicMs = monotonicMs;
    this.#unfinished = new FairShare(memory.maxBytes * unfinishedShare, (connection) => connection.abort());
    this.#sweep = setInterval(() => this.#sweepAnswering(), limits.answerSweepMs).unref();
    this.#look = setInterval(() => this.#lookAtAnswers(), limits.answerLookMs).unref();
    const [open, answering] = [this.#open, this.#answering];
    this.#listeners = {
      resume() {
        open.get(this)?.resumed();
      },
      close() {
        const connection = open.get(this);
        if (connection === undefined) return;
        connection.closed();
        answering.delete(connection);
        open.delete(this);
      },
    };
  }

  /** A socket was accepted. Below TLS its handshake follows. */
  accept(socket: Socket): void {
    this.#places.take(socket);
  }

  add(socket: Socket): void {
    const connection = new HttpConnection(socket, this.memory, this.#monotonicMs());
    this.#open.set(socket, connection);
    this.#places.begun(socket, connection);
    const { resume, close } = this.#listeners;
    socket.on('error', destroy).on('resume', resume).on('close', close);
  }

  /** The connection of a socket that is to be answered. null: it has none, or has closed. */
  answering(socket: object): HttpConnection | null {
    const connection = this.#open.get(socket) ?? null;
    if (connection === null || this.#answering.has(connection)) return connection;
    this.#answering.add(connection);
    // The time for which nothing was to be taken does not count.
    connection.stalledMs(this.#monotonicMs());
    return connection;
  }

  ended(response: HttpResponse): void {
    this.#connectionOf(response)?.ended(response);
  }

  #connectionOf(response: HttpResponse): HttpConnection | null {
    return this.#open.get(response.req.socket) ?? null;
  }

  /** While draining, the newest answer of a connection is the last one: no more requests are behind its own. */
  isLast(response: HttpResponse): boolean {
    return this.#isDraining && this.#connectionOf(response)?.newest === response;
  }

  holdUnfinished(response: HttpResponse, bytes: number): boolean {
    const connection = this.#connectionOf(response);
    if (connection === null) return true;
    this.#unfinished.add(connection, bytes);
    if (this.#unfinished.makeRoom(connection)) return true;
    this.#unfinished.add(connection, -bytes);
    return false;
  }

  releaseUnfinished(response: HttpResponse, bytes: number): void {
    const connection = this.#connectionOf(response);
    if (connection !== null) this.#unfinished.add(connection, -bytes);
  }

  listener(serve: HttpHandler): HttpHandler {
    return (request, response) => {
      response.rules = this;
      this.answering(request.socket)?.take(request, response, serve);
    };
  }

  /** Ends connections that are stalled for answerStallMs, and sooner those that hold most of a nearly full budget. */
  #sweepAnswering(): void {
    const nowMs = this.#monotonicMs();
    const isLook = nowMs >= this.#nextUnreadLookMs;
    const unread = new Map<string, HttpConnection>();
    let askedFor = 0;
    for (const connection of this.#answering) {
      if (connection.stalledMs(nowMs) >= stallMs) connection.reset();
      else if (connection.mayBeUnread) {
        if (isLook && (connection.knowsInode || askedFor++ < inodesAtOnce)) unread.set(connection.inode, connection);
      } else if (connection.isIdle && connection.socket.writableLength === 0) this.#answering.delete(connection);
    }
    // Those without an inode.
    unread.delete('');
    if (unread.size > 0) void this.#endUnread(unread, nowMs);
    // Clients could take nothing while this node itself stood still.
    if (!this.#isNearlyFull || this.#stoodStill) return;
    const holding = [...this.#answering].filter((one) => one.heldBytes > 0);
    for (const connection of this.#stalled(holding, limits.answerStallFullMs)) {
      connection.reset();
      if (!this.#isNearlyFull) return;
    }
  }

  /** Ends connections of which the kernel has taken the answers, and the client takes nothing for answerStallMs. */
  async #endUnread(unread: ReadonlyMap<string, HttpConnection>, askedMs: number): Promise<void> {
    this.#nextUnreadLookMs = Number.POSITIVE_INFINITY;
    const unsent = await unsentBytes(unread);
    this.#nextUnreadLookMs = askedMs + unreadLookMs;
    const nowMs = this.#monotonicMs();
    for (const [inode, connection] of unread)
      if (connection.unreadMs(unsent.get(inode), askedMs, nowMs) >= stallMs) connection.reset();
  }

  /** Notes when the kernel last took bytes of answers: sweeps alone are too coarse for the shorter time limits. */
  #lookAtAnswers(): void {
    this.#looksInTime = this.#isLate ? 0 : this.#looksInTime + 1;
    this.#lookedMs = performance.now();
    if (!this.#isNearlyFull) return;
    const nowMs = this.#monotonicMs();
    for (const connection of this.#answering) if (connection.heldAnswerBytes > 0) connection.stalledMs(nowMs);
  }

  get #isLate(): boolean {
    return performance.now() - this.#lookedMs > 2 * limits.answerLookMs;
  }

  /** Whether this node itself stood still within answerStallRoomMs. Clients could take nothing meanwhile. */
  get #stoodStill(): boolean {
    return this.#isLate || this.#looksInTime * limits.answerLookMs < limits.answerStallRoomMs;
  }

  /**
   * Whether most is held of what others leave of the budget: no end of a connection frees what others hold. Answers
   * alone never fill three quarters of the budget, so their own share is checked as well.
   */
  get #isNearlyFull(): boolean {
    const { memory } = this;
    let othersBytes = 0;
    for (const kind of othersKinds) othersBytes += memory.heldBytes(kind);
    if (memory.heldBytes() - othersBytes > (memory.maxBytes - othersBytes) * nearlyFull) return true;
    return memory.heldBytes('answer') > memory.maxBytes * nearlyFull * answerShare;
  }

  /**
   * If there is no room, a connection that holds more than its equal part is refused. Otherwise other connections that
   * take no bytes are ended: a client that does not read must not keep others from reading. None is ended just after
   * this node stood still.
   */
  makeRoom(response: HttpResponse, bytes: number): boolean {
    const connection = this.#connectionOf(response);
    const maxBytes = this.memory.maxBytes * answerShare;
    const hasRoom = (): boolean => this.memory.heldBytes('answer') + bytes <= maxBytes;
    if (hasRoom()) return true;
    const holding = [...this.#answering].filter((one) => one.heldAnswerBytes > 0);
    if (connection === null || connection.heldAnswerBytes * holding.length > maxBytes) return false;
    if (this.#stoodStill) return false;
    const others = holding.filter((one) => one !== connection);
    for (const other of this.#stalled(others, limits.answerStallRoomMs)) {
      other.reset();
      if (hasRoom()) return true;
    }
    return false;
  }

  /** Connections that are stalled for at least `leastMs`, the most held bytes times stalled time first. */
  #stalled(connections: Iterable<HttpConnection>, leastMs: number): HttpConnection[] {
    const nowMs = this.#monotonicMs();
    const stalled: { readonly connection: HttpConnection; readonly ms: number }[] = [];
    for (const connection of connections) {
      const ms = connection.stalledMs(nowMs);
      if (ms >= leastMs) stalled.push({ connection, ms });
    }
    return stalled
      .sort((left, right) => right.ms * right.connection.heldBytes - left.ms * left.connection.heldBytes)
      .map(({ connection }) => connection);
  }

  /**
   * Closes all connections without a reset. Requests are still answered for drainIdleMs, with `connection: close`, and
   * running ones get at most `graceMs`. Then each idle connection gets its FIN, and what its client still sends is read
   * for drainLingerMs. With `graceMs` 0 all connections are destroyed at once.
   */
  async drain(graceMs: number): Promise<void> {
    this.#isDraining = true;
    const endMs = performance.now() + graceMs;
    const until = async (isDone: () => boolean, ms: number): Promise<void> => {
      const lateMs = Math.min(performance.now() + ms, endMs);
      while (!isDone() && performance.now() < lateMs) await delay(drainLookMs);
    };
    // TLS handshakes that are under way count too.
    await until(() => this.#places.size === 0, limits.drainIdleMs);
    await until(() => this.#open.values().every((connection) => connection.isIdle), graceMs);
    for (const connection of this.#open.values()) if (connection.isIdle) connection.end();
    await until(() => this.#open.size === 0, limits.drainLingerMs);
    for (const { socket } of this.#open.values()) socket.destroy();
    // TLS handshakes are under way below some.
    this.#places.destroyAll();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#sweep);
    clearInterval(this.#look);
  }
}

/** After a CONNECT Node removes its own listener. An error without any listener would end the process. */
function destroy(this: Socket): void {
  this.destroy();
}
