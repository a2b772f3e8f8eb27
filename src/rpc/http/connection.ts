import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../../runtime/limits/limits.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import { type HttpHandler, HttpResponse } from './response.ts';
import { inodeOf } from './socket-state.ts';

interface TakenRequest {
  readonly request: IncomingMessage;
  readonly response: HttpResponse;
  readonly serve: HttpHandler;
  /** Counted while it waits, and while it is under way. */
  readonly heldBytes: number;
}

/** Members of a socket that Node does not publish. */
interface SocketInternals {
  readonly _handle?: { readonly fd?: number; readonly bytesWritten?: number; readonly writeQueueSize?: number } | null;
  /** Of a TLS socket: the TCP socket below it. */
  readonly _parent?: Socket | null;
  /** While node:http itself has paused the socket and its parser, resuming would break the parser. */
  readonly _paused?: boolean;
  /** Called by node:http for each request. If it returns 2, the parser stops where it is. */
  readonly parser?: { onIncoming?: () => number } | null;
}

/**
 * One HTTP/1.1 connection. At most httpUnderWayMax of its requests are served at a time; the socket is paused while
 * others wait. Node parses all that one read returned, so more may still arrive; a connection with more than
 * httpWaitingMax waiting requests is destroyed.
 */
export class HttpConnection {
  readonly socket: Socket;
  /** null before the first request. */
  newest: HttpResponse | null = null;
  readonly #memory: MemoryBudget;
  #underWay: HttpResponse[] = [];
  readonly #waiting: TakenRequest[] = [];
  #isEnding = false;
  /** Called once at most `left` answers are still to be given. */
  #afterAnswers: { readonly left: number; readonly then: () => void } | null = null;
  /** Bytes that the kernel had taken when it last took some, and the time of that (monotonic, ms). */
  #takenBytes = 0;
  #takenAtMs: number;
  /** When the kernel had last taken all that there was. */
  #tookAllAtMs: number;
  /** Of those taken, the bytes that the client surely has. */
  #arrivedBytes = 0;
  /** Bytes that had arrived at the client when it last took some, and the time of that. null: all had, or not known. */
  #progress: { readonly bytes: number; readonly atMs: number } | null = null;
  /** null: not asked for yet. '': there is none. */
  #inode: string | null = null;

  constructor(socket: Socket, memory: MemoryBudget, nowMs: number) {
    this.socket = socket;
    this.#memory = memory;
    this.#takenAtMs = nowMs;
    this.#tookAllAtMs = nowMs;
  }

  resumed(): void {
    if (this.#waiting.length > 0) this.socket.pause();
  }

  closed(): void {
    for (const response of [...this.#underWay]) {
      this.#remove(response);
      response.destroy();
    }
    this.#dropWaiting();
  }

  get isServing(): boolean {
    return this.#underWay.some(({ req, writableEnded }) => req.complete && !writableEnded);
  }

  get isIdle(): boolean {
    return this.#underWay.length === 0;
  }

  take(request: IncomingMessage, response: HttpResponse, serve: HttpHandler): void {
    if (this.#isEnding || this.socket.destroyed) return;
    // A request may fail after its reader has gone. An error without any listener would end the process.
    request.on('error', noMatter);
    this.newest = response;
    const taken = { request, response, serve, heldBytes: headBytes(request) };
    if (this.#underWay.length < limits.httpUnderWayMax) this.#begin(taken);
    else this.#wait(taken);
  }

  #begin({ request, response, serve, heldBytes }: TakenRequest): void {
    // An array that grows by a push has room for 17.
    this.#underWay = [...this.#underWay, response];
    response.on('close', HttpResponse.closed);
    response.holdCall(heldBytes);
    serve(request, response);
  }

  #wait(taken: TakenRequest): void {
    if (this.#waiting.length >= limits.httpWaitingMax || !this.#memory.hold('call', taken.heldBytes)) {
      this.#isEnding = true;
      this.socket.destroy();
      // Otherwise everything from this read would be parsed: up to 1,600 requests, some 20 ms.
      const { parser } = this.socket as SocketInternals;
      if (parser) parser.onIncoming = () => 2;
      return;
    }
    this.#waiting.push(taken);
    this.socket.pause();
  }

  /** An answer was given, or its connection is closed. */
  ended(response: HttpResponse): void {
    if (!this.#remove(response) || this.socket.destroyed) return;
    const after = this.#afterAnswers;
    if (after !== null && this.#underWay.length + this.#waiting.length <= after.left) {
      this.#afterAnswers = null;
      this.#dropWaiting();
      after.then();
      return;
    }
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#memory.release('call', next.heldBytes);
    this.#begin(next);
    if (this.#waiting.length === 0 && (this.socket as SocketInternals)._paused !== true) this.socket.resume();
  }

  #dropWaiting(): void {
    for (const { heldBytes } of this.#waiting.splice(0)) this.#memory.release('call', heldBytes);
  }

  #remove(response: HttpResponse): boolean {
    const at = this.#underWay.indexOf(response);
    if (at < 0) return false;
    this.#underWay.splice(at, 1);
    response.releaseAll();
    return true;
  }

  /**
   * Takes no more requests and calls `then`, which writes to the bare socket, once the earlier ones are answered.
   * `ownAnswer` is the answer that `then` is about; it is not waited for.
   */
  afterAnswers(ownAnswer: HttpResponse | null, then: () => void): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const left = ownAnswer === null ? 0 : 1;
    if (this.#underWay.length + this.#waiting.length <= left) then();
    else this.#afterAnswers = { left, then };
  }

  /** Closes the connection in order, by FIN. What the client still sends is read and dropped. */
  end(): void {
    this.#isEnding = true;
    this.socket.end();
  }

  /** Destroys the connection and frees what it holds for others in the same iteration of the event loop. */
  abort(): void {
    this.socket.destroy();
    for (const response of this.#underWay) response.releaseAll();
    this.#dropWaiting();
  }

  /** The same by a reset, so that the kernel too keeps nothing for a client that does not read. */
  reset(): void {
    // While a shutdown is under way, libuv refuses a reset and Node would then lose the descriptor.
    if (!this.socket.writableEnded && !this.#tcp.destroyed) this.#tcp.resetAndDestroy();
    this.abort();
  }

  get #tcp(): Socket {
    return (this.socket as SocketInternals)._parent ?? this.socket;
  }

  get heldAnswerBytes(): number {
    let bytes = 0;
    for (const response of this.#underWay) bytes += response.heldAnswerBytes;
    return bytes;
  }

  /** A body is held until its request is answered. */
  get heldBytes(): number {
    let bytes = this.heldAnswerBytes;
    for (const response of this.#underWay) bytes += response.heldRequestBytes;
    return bytes;
  }

  /**
   * How long (ms) answers have waited without the kernel taking any of their bytes. It takes more only when a good part
   * of its send buffer is free, so a client that reads slowly also stalls for moments.
   */
  stalledMs(nowMs: number): number {
    this.#noteTaken(nowMs);
    if (this.socket.writableLength > 0) return nowMs - Math.max(this.#takenAtMs, this.#tookAllAtMs);
    this.#tookAllAtMs = nowMs;
    return 0;
  }

  #noteTaken(nowMs: number): void {
    const { _handle: handle } = this.#tcp as SocketInternals;
    const takenBytes = (handle?.bytesWritten ?? 0) - (handle?.writeQueueSize ?? 0);
    if (takenBytes <= this.#takenBytes) return;
    this.#takenBytes = takenBytes;
    this.#takenAtMs = nowMs;
  }

  /**
   * Whether the kernel has taken all answers, and much of them: only `unreadMs` tells whether the client takes it.
   * Without an inode nothing ever does.
   */
  get mayBeUnread(): boolean {
    if (this.socket.writableLength > 0 || this.#inode === '') return false;
    return this.#takenBytes - this.#arrivedBytes > limits.smallAnswerMaxBytes;
  }

  get knowsInode(): boolean {
    return this.#inode !== null;
  }

  get inode(): string {
    this.#inode ??= inodeOf(this.#tcp);
    return this.#inode;
  }

  /**
   * How long (ms) the client has taken nothing of what the kernel has for it. `unsentBytes`: what that was at a time
   * since `askedMs`, when this connection was looked at; undefined: not known.
   */
  unreadMs(unsentBytes: number | undefined, askedMs: number, nowMs: number): number {
    this.#noteTaken(nowMs);
    // What the kernel took meanwhile may be among these bytes, or not.
    if (unsentBytes === undefined || this.#takenAtMs > askedMs) return 0;
    const arrivedBytes = this.#takenBytes - unsentBytes;
    if (unsentBytes <= limits.smallAnswerMaxBytes) {
      this.#arrivedBytes = arrivedBytes;
      this.#progress = null;
      return 0;
    }
    if (this.#progress === null || arrivedBytes > this.#progress.bytes)
      this.#progress = { bytes: arrivedBytes, atMs: nowMs };
    return askedMs - this.#progress.atMs;
  }
}

function noMatter(): void {}

/** Roughly the bytes that a request holds without its body: its objects and the text of its head. */
function headBytes({ rawHeaders, url = '' }: IncomingMessage): number {
  let bytes = 4_096 + url.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
