import { type IncomingMessage, ServerResponse } from 'node:http';
import { type MemoryBudget, type MemoryKind, smallRequestBytes } from '../../runtime/limits/memory-budget.ts';

/** A multiple of the memory budget's own unit. */
export const countStepBytes = 1_024;

/** Bytes that all answers share. Writing them copies nothing, so they are not counted. */
const shared = new WeakSet<Uint8Array>();

/** Registers bytes that are kept for the life of the process and written to many clients. */
export function sharedBytes(bytes: Buffer): Buffer {
  shared.add(bytes);
  return bytes;
}

/** Whether the bytes are kept for the life of the process. */
export function isShared(bytes: Uint8Array): boolean {
  return shared.has(bytes);
}

/** What the answers of one server have in common. */
export interface AnswerRules {
  readonly memory: MemoryBudget;
  /** Headers that every answer carries, as `name, value, …`. */
  readonly headers: readonly string[];
  /**
   * Counts bytes of an unfinished body. Returns false and counts nothing if unfinished bodies hold too much together
   * and the answer's connection holds more than its part.
   */
  holdUnfinished(response: HttpResponse, bytes: number): boolean;
  releaseUnfinished(response: HttpResponse, bytes: number): void;
  /** The answer was given, or its connection is closed. */
  ended(response: HttpResponse): void;
  /** Whether there is room for `bytes` more of an answer. Ends connections that take no bytes if there is none. */
  makeRoom(response: HttpResponse, bytes: number): boolean;
  /** Whether this answer is the last one of its connection. */
  isLast(response: HttpResponse): boolean;
}

type AnyHeaders = readonly unknown[] | Readonly<Record<string, unknown>>;

/**
 * An answer that counts in the memory budget the bytes of its request's body, and those that the client has not taken
 * yet. Its connection calls `releaseAll` once it is closed.
 */
export class HttpResponse extends ServerResponse {
  /** Set by the connection before the request is served. */
  rules: AnswerRules | null = null;
  /** Called when the answer was given, or its connection is closed. */
  call: { responseClosed(): void } | null = null;
  /** Set when the call begins. An answer to malformed bytes in the rest of its request has the same id. */
  requestId: string | null = null;
  /** Whether the call has one answer. A stream holds its request for as long as it is open. */
  isUnary = true;
  /** Whether the caller waits for `100 Continue` before it sends the body. */
  expectsContinue = false;
  /** The bytes of the request's body, and the bytes that are counted for them, in whole steps, as each kind. */
  #bodyBytes = 0;
  #requestBytes = 0;
  #smallBytes = 0;
  #unfinishedBytes = 0;
  #answerBytes = 0;
  #callBytes = 0;
  #isCounted = true;
  #isReleased = false;

  /** Counts what the call holds beside its body, until it is over. It has begun, so it cannot be refused any more. */
  holdCall(bytes: number): void {
    this.rules?.memory.add('call', bytes);
    this.#callBytes = bytes;
  }

  /**
   * Counts bytes of the request's body. Returns false if the budget has no room. `isLast`: the body ends with these
   * bytes, so a body that arrives at once never counts as unfinished.
   */
  holdRequest(bytes: number, isLast: boolean): boolean {
    const { rules } = this;
    if (rules === null || bytes === 0 || this.#isReleased) return true;
    const more = inSteps(this.#bodyBytes + bytes) - this.heldRequestBytes;
    const isSmall = this.isUnary && isLast && this.#bodyBytes === 0 && bytes <= smallRequestBytes;
    if (isLast) this.requestEnded();
    else if (more > 0) {
      if (!rules.holdUnfinished(this, more)) return false;
      this.#unfinishedBytes += more;
    }
    if (more > 0 && !rules.memory.hold(isSmall ? 'small' : 'request', more)) return false;
    this.#bodyBytes += bytes;
    if (isSmall) this.#smallBytes += more;
    else this.#requestBytes += more;
    return true;
  }

  requestEnded(): void {
    if (this.#unfinishedBytes > 0) this.rules?.releaseUnfinished(this, this.#unfinishedBytes);
    this.#unfinishedBytes = 0;
  }

  /** Stops counting the request's body, because it is not kept. */
  dropRequest(): void {
    this.requestEnded();
    this.#release('request', this.#requestBytes);
    this.#release('small', this.#smallBytes);
    this.#requestBytes = 0;
    this.#smallBytes = 0;
    this.#bodyBytes = 0;
  }

  /**
   * Holds the bytes of a large answer of a read before it is written. Returns false if answers would hold more than
   * half of the memory budget. The other half is for requests: clients that do not read never keep others from writing.
   */
  holdAnswer(bytes: number): boolean {
    if (this.rules === null || this.writableEnded || this.#isReleased) return true;
    const more = inSteps(bytes) - this.#answerBytes;
    if (more <= 0) return true;
    if (!this.rules.makeRoom(this, more) || !this.rules.memory.hold('answer', more)) return false;
    this.#answerBytes += more;
    return true;
  }

  /** Like holdAnswer, but only if there is room already: no other connection ends for it. */
  holdAnswerIfFree(bytes: number): boolean {
    const { rules } = this;
    if (rules === null) return true;
    const more = inSteps(bytes) - this.#answerBytes;
    const isFree = rules.memory.heldBytes('answer') + more <= rules.memory.maxBytes / 2;
    return isFree && this.holdAnswer(bytes);
  }

  get heldRequestBytes(): number {
    return this.#requestBytes + this.#smallBytes;
  }

  get heldAnswerBytes(): number {
    return this.#answerBytes;
  }

  /** Whether answers hold less than their half of the budget. For an answer whose size is not known yet. */
  get hasRoomForAnswers(): boolean {
    if (this.rules === null) return true;
    const { memory } = this.rules;
    return memory.heldBytes('answer') <= memory.maxBytes / 2 && memory.heldBytes() < memory.maxBytes;
  }

  /** Tells a caller that waits for it to send the body now. */
  continueIfExpected(): void {
    if (this.expectsContinue) this.writeContinue();
    this.expectsContinue = false;
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

  /** The one listener of all answers for `close`: each closure would be kept as long as a stream. */
  static readonly closed = function (this: HttpResponse): void {
    this.rules?.ended(this);
    this.call?.responseClosed();
  };

  /**
   * Frees the text of a head that is on its way, of which Node only asks whether there is one. V8 keeps it as a tree of
   * more than a kilobyte.
   */
  dropHead(): void {
    if (this.headersSent) (this as { _header?: string })._header = '-';
  }

  /** Counts bytes that the socket has not taken at once. */
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

  releaseAll(): void {
    this.#isReleased = true;
    this.dropRequest();
    this.#release('call', this.#callBytes);
    this.#callBytes = 0;
    this.#release('answer', this.#answerBytes);
    this.#answerBytes = 0;
  }

  #release(kind: MemoryKind, bytes: number): void {
    if (bytes > 0) this.rules?.memory.release(kind, bytes);
  }
}

/** Rounds up to whole steps, so that counts can be added and subtracted exactly. */
function inSteps(bytes: number): number {
  return Math.ceil(bytes / countStepBytes) * countStepBytes;
}

export type HttpHandler = (request: IncomingMessage, response: HttpResponse) => void;
