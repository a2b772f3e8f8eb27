import { type IncomingMessage, ServerResponse } from 'node:http';
import type { MemoryBudget, MemoryKind } from '../../runtime/memory-budget.ts';

/** A multiple of the memory budget's own unit. */
const countStepBytes = 1_024;

/**
 * Bytes that all answers share, such as those of a constant document: writing them copies nothing, so they are not
 * counted.
 */
const shared = new WeakSet<Uint8Array>();

/** Marks bytes that are made once, kept for the life of the process and written to many clients. */
export function sharedBytes(bytes: Buffer): Buffer {
  shared.add(bytes);
  return bytes;
}

/** What the answers of one server have in common. */
export interface AnswerRules {
  readonly memory: MemoryBudget;
  /** `name, value, …` of headers that every answer carries. */
  readonly headers: readonly string[];
  /**
   * Counts bytes of a body that has begun and not ended, for the answer's connection. False, and nothing is counted,
   * where such bodies hold too much together, and this connection more than its part.
   */
  tryHoldUnfinished(response: HttpResponse, bytes: number): boolean;
  releaseUnfinished(response: HttpResponse, bytes: number): void;
  /** Whether there is room for so many bytes of an answer. Ends connections that take nothing, where there is none. */
  makeRoom(response: HttpResponse, bytes: number): boolean;
  /** Whether this answer is the last one of its connection. */
  isLast(response: HttpResponse): boolean;
}

type AnyHeaders = readonly unknown[] | Readonly<Record<string, unknown>>;

/**
 * An answer that counts in the node's memory budget what it makes the node hold: bytes of its request's body, and bytes
 * that the client has not taken yet. `releaseAll` must be called once when the answer is closed; the connection does
 * it.
 */
export class HttpResponse extends ServerResponse {
  /** Set by the connection before the request is served. */
  rules: AnswerRules | null = null;
  /** Bytes of the request's body, and how many are counted for them. */
  #bodyBytes = 0;
  #requestBytes = 0;
  /** Of those, while the body has not ended. */
  #unfinishedBytes = 0;
  #answerBytes = 0;
  #isCounted = true;
  #isReleased = false;

  /**
   * Counts bytes of the request's body. False where the node would hold more than it may; the body is to be dropped
   * then. `isLast`: it ends with them, so that a body that comes at once is never one of the unfinished.
   */
  tryHoldRequest(bytes: number, isLast: boolean): boolean {
    const { rules } = this;
    if (rules === null || bytes === 0 || this.#isReleased) return true;
    const more = inSteps(this.#bodyBytes + bytes) - this.#requestBytes;
    if (isLast) this.requestEnded();
    else if (more > 0) {
      if (!rules.tryHoldUnfinished(this, more)) return false;
      this.#unfinishedBytes += more;
    }
    if (more > 0 && !rules.memory.tryHold('request', more)) return false;
    this.#bodyBytes += bytes;
    this.#requestBytes += more;
    return true;
  }

  /** Notes that the request's body has ended. */
  requestEnded(): void {
    if (this.#unfinishedBytes > 0) this.rules?.releaseUnfinished(this, this.#unfinishedBytes);
    this.#unfinishedBytes = 0;
  }

  /** Counts nothing more for the request's body, which nobody keeps. */
  dropRequest(): void {
    this.requestEnded();
    this.#release('request', this.#requestBytes);
    this.#requestBytes = 0;
    this.#bodyBytes = 0;
  }

  /**
   * Holds the bytes of a large answer of a read from before it is written. False where answers would hold more than
   * half of the memory budget: the other half stays for requests, so that what nobody reads keeps no one from writing.
   */
  tryHoldAnswer(bytes: number): boolean {
    if (this.rules === null || this.writableEnded || this.#isReleased) return true;
    const more = inSteps(bytes) - this.#answerBytes;
    if (more <= 0) return true;
    if (!this.rules.makeRoom(this, more) || !this.rules.memory.tryHold('answer', more)) return false;
    this.#answerBytes += more;
    return true;
  }

  /** What is counted for the request's body. */
  get heldRequestBytes(): number {
    return this.#requestBytes;
  }

  /** What is counted for this answer. */
  get heldAnswerBytes(): number {
    return this.#answerBytes;
  }

  /** Whether answers hold less than that, for an answer whose size is not known yet. */
  get hasRoomForAnswers(): boolean {
    if (this.rules === null) return true;
    const { memory } = this.rules;
    return memory.heldBytes('answer') <= memory.maxBytes / 2 && memory.heldBytes() < memory.maxBytes;
  }

  override writeHead(status: number, ...rest: unknown[]): this {
    const { rules } = this;
    if (rules !== null) {
      if (rules.isLast(this)) this.shouldKeepAlive = false;
      if (rules.headers.length > 0) this.#addHeaders(rules.headers, rest.at(-1) as AnyHeaders | undefined);
    }
    return super.writeHead(status, ...(rest as []));
  }

  #addHeaders(headers: readonly string[], given: AnyHeaders | undefined): void {
    if (Array.isArray(given)) given.push(...headers);
    else for (let at = 0; at < headers.length; at += 2) this.setHeader(headers[at] ?? '', headers[at + 1] ?? '');
  }

  override write(chunk: unknown, ...rest: unknown[]): boolean {
    const isTaken = super.write(chunk, ...(rest as []));
    if (!isTaken) this.#count();
    return isTaken;
  }

  override end(chunk?: unknown, ...rest: unknown[]): this {
    if (chunk instanceof Uint8Array && shared.has(chunk)) this.#isCounted = false;
    super.end(chunk, ...(rest as []));
    this.#count();
    return this;
  }

  /** What the socket has not taken at once waits in memory. Most answers are taken at once and cost nothing here. */
  #count(): void {
    if (this.rules === null || this.#isReleased) return;
    const waiting = this.#isCounted ? inSteps(this.writableLength) : 0;
    if (waiting > this.#answerBytes) {
      this.rules.memory.add('answer', waiting - this.#answerBytes);
      if (this.#answerBytes === 0) this.once('drain', HttpResponse.#drained);
    } else if (this.writableEnded) this.#release('answer', this.#answerBytes - waiting);
    else return;
    this.#answerBytes = waiting;
  }

  static readonly #drained = function (this: HttpResponse): void {
    this.#release('answer', this.#answerBytes);
    this.#answerBytes = 0;
  };

  /** Releases what is still counted. */
  releaseAll(): void {
    this.#isReleased = true;
    this.dropRequest();
    this.#release('answer', this.#answerBytes);
    this.#answerBytes = 0;
  }

  #release(kind: MemoryKind, bytes: number): void {
    if (bytes > 0) this.rules?.memory.release(kind, bytes);
  }
}

/** Bytes as they are counted: a sum of parts is then the count of their sum. */
function inSteps(bytes: number): number {
  return Math.ceil(bytes / countStepBytes) * countStepBytes;
}

/** The request of a server made with `HttpResponse` and its answer. */
export type HttpHandler = (request: IncomingMessage, response: HttpResponse) => void;
