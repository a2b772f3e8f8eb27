import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../../limits.ts';
import type { MemoryBudget } from '../../runtime/memory-budget.ts';
import type { HttpHandler, HttpResponse } from './response.ts';

/** A request that waits until fewer of its connection are under way. */
interface WaitingRequest {
  readonly request: IncomingMessage;
  readonly response: HttpResponse;
  readonly serve: HttpHandler;
  readonly heldBytes: number;
}

/** What Node keeps of a socket beside its public members. Its own socket timeouts look at the same counts. */
interface SocketInternals {
  readonly _handle?: { readonly bytesWritten?: number; readonly writeQueueSize?: number } | null;
  /** Set while node:http itself has paused the socket and its parser; resuming then would break the parser. */
  readonly _paused?: boolean;
  /** What node:http calls for each request; the answer 2 makes the parser stop where it is. */
  readonly parser?: { onIncoming?: () => number } | null;
}

/**
 * One HTTP/1.1 connection. Of its requests at most httpUnderWayMax are served at a time; further ones wait, and while
 * any waits the socket is paused. Node parses the whole of what one read brought, so a few more may still come; a
 * connection that brings more than httpWaitingMax ends.
 */
export class HttpConnection {
  readonly socket: Socket;
  /** The answer to the request that came last; null before the first. */
  newest: HttpResponse | null = null;
  /** Of bodies that have begun and not ended. */
  unfinishedBytes = 0;
  readonly #memory: MemoryBudget;
  readonly #underWay: HttpResponse[] = [];
  readonly #waiting: WaitingRequest[] = [];
  #isEnding = false;
  /** What happens once at most `left` answers are not given yet. */
  #afterAnswers: { readonly left: number; readonly then: () => void } | null = null;
  /** Bytes that the kernel had taken when it last took some, and when that was. */
  #takenBytes = 0;
  #takenAtMs: number;

  constructor(socket: Socket, memory: MemoryBudget, nowMs: number) {
    this.socket = socket;
    this.#memory = memory;
    this.#takenAtMs = nowMs;
    // Node takes its own listener away after a CONNECT; an error without any would end the process.
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

  /** Whether no request is under way or waits. */
  get isIdle(): boolean {
    return this.#underWay.length === 0;
  }

  /** Serves a request, at once or when its turn comes. */
  take(request: IncomingMessage, response: HttpResponse, serve: HttpHandler): void {
    if (this.#isEnding || this.socket.destroyed) return;
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
    if (this.#waiting.length >= limits.httpWaitingMax || !this.#memory.tryHold('request', heldBytes)) {
      this.#isEnding = true;
      this.socket.destroy();
      // Else all that came in this read would be parsed: up to 1,600 requests, some 20 ms.
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
   * Takes no more requests, and calls `then` once those before are answered: bytes on the bare socket would else pass
   * for the answer to one of them. `ownAnswer`: the answer that `then` itself concerns, which is not waited for.
   */
  afterAnswers(ownAnswer: HttpResponse | null, then: () => void): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const left = ownAnswer === null ? 0 : 1;
    if (this.#underWay.length + this.#waiting.length <= left) then();
    else this.#afterAnswers = { left, then };
  }

  /** Ends the connection in order, by FIN; what the client still sends is read and dropped. */
  end(): void {
    this.#isEnding = true;
    this.socket.end();
  }

  /** Ends the connection at once. What it holds is free from here on, so that others can have it in the same turn. */
  abort(): void {
    this.socket.destroy();
    for (const response of this.#underWay) response.releaseAll();
    this.#dropWaiting();
  }

  /** What is counted for answers of this connection. */
  get heldAnswerBytes(): number {
    let bytes = 0;
    for (const response of this.#underWay) bytes += response.heldAnswerBytes;
    return bytes;
  }

  /** The same, and what is counted for bodies of its requests, which are held until they are answered. */
  get heldBytes(): number {
    let bytes = this.heldAnswerBytes;
    for (const response of this.#underWay) bytes += response.heldRequestBytes;
    return bytes;
  }

  /**
   * For how long answers have waited and the kernel has taken none of their bytes. It takes more only when a good part
   * of its send buffer is free, so a client that reads slowly but steadily stalls for moments too.
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

/** What a waiting request holds, about: its objects and the text of its head. */
function headBytes({ rawHeaders, url = '' }: IncomingMessage): number {
  let bytes = 4_096 + url.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
