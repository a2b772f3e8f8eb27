import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../../runtime/limits/limits.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import type { HttpHandler, HttpResponse } from './response.ts';

/** A request that waits until fewer requests of its connection are being served. */
interface WaitingRequest {
  readonly request: IncomingMessage;
  readonly response: HttpResponse;
  readonly serve: HttpHandler;
  readonly heldBytes: number;
}

/** Members of a socket that Node does not publish. Node's own socket timeouts use the same counts. */
interface SocketInternals {
  readonly _handle?: { readonly bytesWritten?: number; readonly writeQueueSize?: number } | null;
  /** Set while node:http itself has paused the socket and its parser. Resuming then would break the parser. */
  readonly _paused?: boolean;
  /** Called by node:http for each request. If it returns 2, the parser stops where it is. */
  readonly parser?: { onIncoming?: () => number } | null;
}

/**
 * One HTTP/1.1 connection. At most httpUnderWayMax of its requests are served at a time. Further requests wait, and the
 * socket is paused while any waits. Node parses everything that one read returned, so a few more requests may still
 * arrive; a connection with more than httpWaitingMax waiting requests is destroyed.
 */
export class HttpConnection {
  readonly socket: Socket;
  /** The answer to the newest request; null before the first request. */
  newest: HttpResponse | null = null;
  readonly #memory: MemoryBudget;
  readonly #underWay: HttpResponse[] = [];
  readonly #waiting: WaitingRequest[] = [];
  #isEnding = false;
  /** Called once at most `left` answers are still to be given. */
  #afterAnswers: { readonly left: number; readonly then: () => void } | null = null;
  /** Bytes that the kernel had taken when it last took some, and the time of that (monotonic, ms). */
  #takenBytes = 0;
  #takenAtMs: number;

  constructor(socket: Socket, memory: MemoryBudget, nowMs: number) {
    this.socket = socket;
    this.#memory = memory;
    this.#takenAtMs = nowMs;
    // After a CONNECT Node removes its own listener. An error without any listener would end the process.
    socket.on('error', () => socket.destroy());
    socket.on('resume', () => {
      if (this.#waiting.length > 0) socket.pause();
    });
    socket.on('close', () => {
      for (const response of [...this.#underWay]) {
        this.#remove(response);
        response.destroy();
      }
      this.#dropWaiting();
    });
  }

  /** Whether no request is being served or waits. */
  get isIdle(): boolean {
    return this.#underWay.length === 0;
  }

  /** Serves a request, at once or when a place is free. */
  take(request: IncomingMessage, response: HttpResponse, serve: HttpHandler): void {
    if (this.#isEnding || this.socket.destroyed) return;
    // A caller that hangs up may make a request fail after its reader has gone. An error without any listener would end
    // the process.
    request.on('error', () => {});
    this.newest = response;
    if (this.#underWay.length < limits.httpUnderWayMax) this.#begin(request, response, serve);
    else this.#wait(request, response, serve);
  }

  #begin(request: IncomingMessage, response: HttpResponse, serve: HttpHandler): void {
    this.#underWay.push(response);
    response.once('close', () => this.#ended(response));
    serve(request, response);
  }

  #wait(request: IncomingMessage, response: HttpResponse, serve: HttpHandler): void {
    const heldBytes = headBytes(request);
    if (this.#waiting.length >= limits.httpWaitingMax || !this.#memory.hold('request', heldBytes)) {
      this.#isEnding = true;
      this.socket.destroy();
      // Otherwise everything from this read would be parsed: up to 1,600 requests, some 20 ms.
      const { parser } = this.socket as SocketInternals;
      if (parser) parser.onIncoming = () => 2;
      return;
    }
    this.#waiting.push({ request, response, serve, heldBytes });
    this.socket.pause();
  }

  #ended(response: HttpResponse): void {
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
    this.#memory.release('request', next.heldBytes);
    this.#begin(next.request, next.response, next.serve);
    if (this.#waiting.length === 0 && (this.socket as SocketInternals)._paused !== true) this.socket.resume();
  }

  #dropWaiting(): void {
    for (const { heldBytes } of this.#waiting.splice(0)) this.#memory.release('request', heldBytes);
  }

  #remove(response: HttpResponse): boolean {
    const at = this.#underWay.indexOf(response);
    if (at < 0) return false;
    this.#underWay.splice(at, 1);
    response.releaseAll();
    return true;
  }

  /**
   * Takes no more requests and calls `then` once the earlier ones are answered. Otherwise a client would take the bytes
   * that `then` writes to the bare socket for the answer to an earlier request. `ownAnswer` is the answer that `then`
   * is about; it is not waited for.
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

  /**
   * Destroys the connection. The memory that it holds is free at once, so that other connections can use it in the same
   * turn of the event loop.
   */
  abort(): void {
    this.socket.destroy();
    for (const response of this.#underWay) response.releaseAll();
    this.#dropWaiting();
  }

  /** Bytes that are counted for answers of this connection. */
  get heldAnswerBytes(): number {
    let bytes = 0;
    for (const response of this.#underWay) bytes += response.heldAnswerBytes;
    return bytes;
  }

  /** Bytes that are counted for answers and for bodies of requests. A body is held until its request is answered. */
  get heldBytes(): number {
    let bytes = this.heldAnswerBytes;
    for (const response of this.#underWay) bytes += response.heldRequestBytes;
    return bytes;
  }

  /**
   * How long (ms) answers have waited without the kernel taking any of their bytes. The kernel takes more only when a
   * good part of its send buffer is free, so a client that reads slowly but steadily also stalls for moments.
   */
  stalledMs(nowMs: number): number {
    const { socket } = this;
    const { _handle: handle } = socket as SocketInternals;
    const takenBytes = (handle?.bytesWritten ?? 0) - (handle?.writeQueueSize ?? 0);
    if (socket.writableLength === 0 || takenBytes > this.#takenBytes) {
      this.#takenBytes = takenBytes;
      this.#takenAtMs = nowMs;
    }
    return nowMs - this.#takenAtMs;
  }
}

/** Roughly the bytes that a waiting request holds: its objects and the text of its head. */
function headBytes({ rawHeaders, url = '' }: IncomingMessage): number {
  let bytes = 4_096 + url.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
