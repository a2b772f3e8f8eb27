import type { Message } from '@bufbuild/protobuf';
import { partsIn } from '../../../domain/json/json-parts.ts';
import { limits } from '../../../runtime/limits/limits.ts';
import { type MemoryBudget, requestKind } from '../../../runtime/limits/memory-budget.ts';
import { outOfMemoryBudget } from '../../../service/limits/out-of-memory-budget.ts';

interface RequestSource {
  /** Allows `count` more requests. `takenBytes` are the bytes of earlier ones that were taken. */
  grant(count: number, takenBytes: number): unknown;
  /** No more requests are wanted. */
  drop(): unknown;
}

interface Read {
  readonly message: Message;
  readonly parts: number;
  bytes: number;
}

/**
 * The requests of a stream. At most streamReadAheadMax requests, or streamReadAheadBytes, are read ahead; more are read
 * once the handler has taken half of them. Only one `next` may wait at a time.
 */
export class RequestQueue implements AsyncIterable<Message>, AsyncIterator<Message> {
  readonly #source: RequestSource;
  readonly #read: (bytes: Buffer) => Message;
  readonly #memory: MemoryBudget;
  #queue: Read[] = [];
  #next = 0;
  /** Since more were asked for. */
  #taken = 0;
  #takenBytes = 0;
  #ended = false;
  #error: unknown = null;
  takenParts = 0;
  #waiting: { resolve(result: IteratorResult<Message>): void; reject(error: unknown): void } | null = null;

  constructor(source: RequestSource, memory: MemoryBudget, read: (bytes: Buffer) => Message) {
    this.#source = source;
    this.#memory = memory;
    this.#read = read;
  }

  [Symbol.asyncIterator](): this {
    // Nothing is read before a handler iterates, because the credential is checked first.
    if (!this.#ended) this.#source.grant(limits.streamReadAheadMax, 0);
    return this;
  }

  take(bytes: Buffer): void {
    if (this.#ended) return;
    let message: Message;
    try {
      message = this.#read(bytes);
      if (this.#waiting === null && !this.#memory.hold(requestKind(bytes.length), bytes.length))
        throw outOfMemoryBudget();
    } catch (error) {
      this.#error = error;
      this.stop();
      return;
    }
    const parts = partsIn(bytes);
    if (this.#waiting === null) {
      this.#queue.push({ message, parts, bytes: bytes.length });
      return;
    }
    const { resolve } = this.#waiting;
    this.#waiting = null;
    this.takenParts = parts;
    this.#isTaken(bytes.length);
    resolve({ done: false, value: message });
  }

  next(): Promise<IteratorResult<Message>> {
    const value = this.#queue[this.#next];
    if (value !== undefined) {
      this.#next += 1;
      if (this.#next >= limits.streamReadAheadMax / 2) this.#forgetTaken();
      this.#memory.release(requestKind(value.bytes), value.bytes);
      this.takenParts = value.parts;
      this.#isTaken(value.bytes);
      return Promise.resolve({ done: false, value: value.message });
    }
    if (this.#queue.length > 0) this.#forgetTaken();
    if (this.#ended) return this.#finish();
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  #forgetTaken(): void {
    this.#queue = this.#queue.slice(this.#next);
    this.#next = 0;
  }

  #isTaken(bytes: number): void {
    this.#taken += 1;
    this.#takenBytes += bytes;
    const isHalf = this.#taken >= limits.streamReadAheadMax / 2 || this.#takenBytes >= limits.streamReadAheadBytes / 2;
    if (this.#ended || !isHalf) return;
    this.#source.grant(this.#taken, this.#takenBytes);
    this.#taken = 0;
    this.#takenBytes = 0;
  }

  /** Rejects once with the error, if there is one. */
  #finish(): Promise<IteratorResult<Message>> {
    const error = this.#error;
    this.#error = null;
    return error === null ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(error);
  }

  return(): Promise<IteratorResult<Message>> {
    this.release();
    this.#queue = [];
    this.#next = 0;
    this.stop();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** The call was answered: waiting requests are counted no more. A handler that still runs may take them. */
  release(): void {
    for (const read of this.#queue.slice(this.#next)) {
      this.#memory.release(requestKind(read.bytes), read.bytes);
      read.bytes = 0;
    }
  }

  /** The caller has sent its last request. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#waiting === null) return;
    const { resolve, reject } = this.#waiting;
    this.#waiting = null;
    this.#finish().then(resolve, reject);
  }

  /** Takes no more requests. Requests that were read before are still handed out; later ones are dropped. */
  stop(): void {
    if (!this.#ended) this.#source.drop();
    this.end();
  }
}
