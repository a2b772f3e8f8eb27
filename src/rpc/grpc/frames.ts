/**
 * The protocol between the worker (worker.ts) and the main thread. All that a thread sends in one iteration of its
 * event loop goes over in one buffer, frame after frame. A frame is a kind, a call's number, and the fields of its
 * kind.
 */

export const workerEvent = {
  /**
   * method u32, deadline f64 (Unix time, ms), texts (the caller's address, names and values of headers), request bytes.
   */
  begun: 1,
  /** bytes: the next request of a stream, or the single request of a call that was arriving. */
  request: 2,
  /** No more requests come. */
  requestsEnd: 3,
  /** The caller has gone, or its connection has closed. */
  gone: 4,
  /** bytes u32: how many more bytes of a stream's answers HTTP/2 has taken. */
  sent: 5,
  /**
   * status u8 (of gRPC), ms f64, texts (route, code, message, request id or '', bound or ''): grpc-js refused a call
   * before the service had it. The main thread answers with `fail`, after which the number is free.
   */
  refused: 6,
  /**
   * status u8 (of gRPC), texts (code, message, bound or ''): the request of a call that is arriving, or the requests of
   * a stream, cannot be read on.
   */
  cut: 7,
  /**
   * ms f64, texts (route, code or '', request id or ''): a call was answered without the service. The number has no
   * meaning.
   */
  noted: 8,
  /**
   * Like `begun`, but without the bytes: the single request of the call has not ended. It is followed by `request` with
   * the bytes, by `cut`, or by `gone`.
   */
  arriving: 9,
} as const;

/**
 * What the main thread tells the worker to do. Each call gets one `answer`, `end` or `fail`, after which its number is
 * free.
 */
export const workerCommand = {
  /** texts (names and values of headers), bytes: the answer of a unary call. */
  answer: 1,
  /** status u8, texts (headers), message (UTF-8), details bytes (google.rpc.Status). */
  fail: 2,
  /** texts (headers): sent before the first answer of a stream. */
  headers: 3,
  /** bytes: one answer of a stream. */
  send: 4,
  end: 5,
  /**
   * count u32, bytes u32: the worker may hand over `count` more requests; the handler has taken `bytes` of earlier
   * ones.
   */
  grant: 6,
  /** Drop all requests from now on. */
  drop: 7,
  /** The caller of a call that is arriving is admitted. */
  admitted: 8,
} as const;

const startBytes = 4 * 1024;
/** The largest buffer that is allocated in advance for the next iteration. */
const readyMaxBytes = 64 * 1024;
/** An iteration with more frames posts several messages: the other thread can do other work between them. */
const messageMaxFrames = 100;
/** A message of this size takes no further frame. */
const messageFullBytes = 256 * 1024;

/** Collects the frames of one iteration of the event loop, and posts them after its other work. */
export class FrameWriter {
  readonly #post: (frames: Uint8Array<ArrayBuffer>, count: number) => void;
  readonly #afterIteration: () => void;
  #bytes = Buffer.allocUnsafeSlow(startBytes);
  #at = 0;
  #count = 0;

  /** `post` takes over the buffer of `count` frames. `afterIteration` is called after the last ones of an iteration. */
  constructor(post: (frames: Uint8Array<ArrayBuffer>, count: number) => void, afterIteration: () => void = () => {}) {
    this.#post = post;
    this.#afterIteration = afterIteration;
  }

  frame(kind: number, call: number): this {
    if (this.#count === messageMaxFrames || this.#at >= messageFullBytes) this.flush();
    if (this.#at === 0) setImmediate(this.#endIteration);
    this.#count += 1;
    this.#room(5);
    this.#at = this.#bytes.writeUInt8(kind, this.#at);
    return this.u32(call);
  }

  u8(value: number): this {
    this.#room(1);
    this.#at = this.#bytes.writeUInt8(value, this.#at);
    return this;
  }

  u32(value: number): this {
    this.#room(4);
    this.#at = this.#bytes.writeUInt32LE(value, this.#at);
    return this;
  }

  f64(value: number): this {
    this.#room(8);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
    return this;
  }

  bytes(value: Uint8Array): this {
    this.u32(value.length).#room(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
    return this;
  }

  /** Writes texts in latin1, such as headers. */
  texts(texts: readonly string[]): this {
    this.u32(texts.length);
    for (const text of texts) {
      this.u32(text.length).#room(text.length);
      this.#at += this.#bytes.write(text, this.#at, 'latin1');
    }
    return this;
  }

  #endIteration = (): void => {
    this.flush();
    this.#afterIteration();
  };

  flush(): void {
    if (this.#at === 0) return;
    const frames = this.#bytes.subarray(0, this.#at);
    // A busy iteration is usually followed by another one of its size.
    this.#bytes = Buffer.allocUnsafeSlow(Math.max(startBytes, Math.min(this.#at + (this.#at >> 2), readyMaxBytes)));
    const count = this.#count;
    this.#at = 0;
    this.#count = 0;
    this.#post(frames, count);
  }

  #room(length: number): void {
    if (this.#at + length <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#at + length));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }
}

/** Returned bytes are a view that keeps the whole buffer alive: copy what you keep. */
export class FrameReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(frames: Uint8Array<ArrayBuffer>) {
    this.#bytes = Buffer.from(frames.buffer, frames.byteOffset, frames.length);
  }

  get length(): number {
    return this.#bytes.length;
  }

  get isEmpty(): boolean {
    return this.#at >= this.#bytes.length;
  }

  u8(): number {
    const value = this.#bytes.readUInt8(this.#at);
    this.#at += 1;
    return value;
  }

  u32(): number {
    const value = this.#bytes.readUInt32LE(this.#at);
    this.#at += 4;
    return value;
  }

  f64(): number {
    const value = this.#bytes.readDoubleLE(this.#at);
    this.#at += 8;
    return value;
  }

  bytes(): Buffer {
    const length = this.u32();
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  texts(): string[] {
    const texts = new Array<string>(this.u32());
    for (let index = 0; index < texts.length; index++) {
      const length = this.u32();
      this.#at += length;
      texts[index] = this.#bytes.toString('latin1', this.#at - length, this.#at);
    }
    return texts;
  }
}

/** A call of grpc-js that the main thread answers. */
export interface WorkerCall {
  /** Carries out a frame. Returns true if it was the call's last frame. */
  handle(kind: number, frame: FrameReader): boolean;
}

/** The worker keeps this header of a call, because grpc-js may refuse the call after it has begun. */
export const requestIdHeader = 'x-request-id';
