import type { Readable } from 'node:stream';
import type { Message } from '@bufbuild/protobuf';
import { limits } from '../../limits.ts';

/**
 * The requests of a stream, for a handler that takes them one by one. At most streamReadAheadMax of them are read ahead;
 * then the connection is not read on until the handler has taken half of them. Only one `next` may wait at a time.
 */
export class RequestQueue implements AsyncIterable<Message>, AsyncIterator<Message> {
  readonly #source: Readable;
  readonly #read: (bytes: Buffer) => Message;
  #queue: Message[] = [];
  #taken = 0;
  #ended = false;
  #error: unknown = null;
  #waiting: { resolve(result: IteratorResult<Message>): void; reject(error: unknown): void } | null = null;

  constructor(source: Readable, read: (bytes: Buffer) => Message) {
    this.#source = source;
    this.#read = read;
  }

  [Symbol.asyncIterator](): this {
    // Nothing is read before a handler asks: the credential comes first.
    this.#source.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onEnd);
    return this;
  }

  #onData = (bytes: Buffer): void => {
    if (this.#ended) return;
    let message: Message;
    try {
      message = this.#read(bytes);
    } catch (error) {
      this.#error = error;
      this.stop();
      return;
    }
    if (this.#waiting !== null) {
      const { resolve } = this.#waiting;
      this.#waiting = null;
      resolve({ done: false, value: message });
      return;
    }
    this.#queue.push(message);
    if (this.#queue.length - this.#taken >= limits.streamReadAheadMax) this.#source.pause();
  };

  #onEnd = (): void => this.stop();

  next(): Promise<IteratorResult<Message>> {
    const value = this.#queue[this.#taken];
    if (value !== undefined) {
      this.#taken += 1;
      if (this.#taken >= limits.streamReadAheadMax / 2) this.#makeRoom();
      return Promise.resolve({ done: false, value });
    }
    if (this.#queue.length > 0) this.#makeRoom();
    if (this.#ended) return this.#finish();
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  #makeRoom(): void {
    this.#queue = this.#queue.slice(this.#taken);
    this.#taken = 0;
    if (!this.#ended && this.#source.isPaused()) this.#source.resume();
  }

  /** Throws what went wrong once, then is at its end. */
  #finish(): Promise<IteratorResult<Message>> {
    const error = this.#error;
    this.#error = null;
    return error === null ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(error);
  }

  return(): Promise<IteratorResult<Message>> {
    this.#queue = [];
    this.#taken = 0;
    this.stop();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Takes no more requests; those read before are still handed out. What the caller sends from now on is dropped. */
  stop(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#source.isPaused()) this.#source.resume();
    if (this.#waiting === null) return;
    const { resolve, reject } = this.#waiting;
    this.#waiting = null;
    this.#finish().then(resolve, reject);
  }
}
