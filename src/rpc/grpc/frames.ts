/**
 * How the thread that speaks gRPC (thread.ts) and the main thread talk: what one has to tell in a turn of its event
 * loop goes over in one piece of memory, frames one behind the other. A frame is a kind, a call's number and fields as
 * each kind has them.
 */

/** What the thread tells of calls. */
export const workerEvent = {
  /**
   * method u32, deadline f64 (milliseconds since 1970), head (the caller's address, names and values of headers),
   * request bytes.
   */
  begun: 1,
  /** bytes: one more request of a stream, or the one of a call that was arriving. */
  request: 2,
  /** No more requests come. */
  requestsEnd: 3,
  /** The caller has gone, or its connection has. */
  gone: 4,
  /** bytes u32: so much of a stream's answers was taken by HTTP/2. */
  sent: 5,
  /**
   * status u8 (of gRPC), ms f64, head (route, code, message, request id or '', bound or ''): a call that grpc-js
   * refused before the service had it. Gets a `fail`, after which its number is free.
   */
  refused: 6,
  /**
   * status u8 (of gRPC), head (code, message, bound or ''): the request of a call that is arriving, or those of a
   * stream, can be read no further.
   */
  cut: 7,
  /**
   * ms f64, head (route, code or '', request id or ''): a call that was answered without the service. Its number means
   * nothing.
   */
  noted: 8,
  /**
   * As `begun`, but without the bytes: a call whose one request has not come to its end. A `request` follows with its
   * bytes, or a `cut`, or a `gone`.
   */
  arriving: 9,
} as const;

/** What the thread is told to do. Each call gets one `answer`, `end` or `fail`, after which its number is free. */
export const workerCommand = {
  /** head (names and values of headers), bytes: the answer of a unary call. */
  answer: 1,
  /** status u8, head, message (UTF-8), details bytes (google.rpc.Status). */
  fail: 2,
  /** head: of a stream of answers, before the first. */
  headers: 3,
  /** bytes: one answer of a stream. */
  send: 4,
  end: 5,
  /** count u32, bytes u32: so many more requests may be handed over, now that so many bytes of them were taken. */
  grant: 6,
  /** Requests from now on are dropped. */
  drop: 7,
  /** The caller of a call that is arriving was let in. */
  admitted: 8,
} as const;

const startBytes = 4 * 1024;
/** What is made ready for the next turn at most. */
const readyMaxBytes = 64 * 1024;
/** A turn that has more to tell posts it in parts, so that the other thread can do something else between them. */
const messageMaxFrames = 100;
/** A part that has reached so many bytes takes no further frame. */
const messageFullBytes = 256 * 1024;

/** Frames that wait to go over. Those of one turn of the event loop go together, behind what else the turn does. */
export class FrameWriter {
  readonly #post: (frames: Uint8Array<ArrayBuffer>, count: number) => void;
  readonly #afterTurn: () => void;
  #bytes = Buffer.allocUnsafeSlow(startBytes);
  #at = 0;
  #count = 0;

  /**
   * `post` takes the memory over; `count`: how many frames there are in it. `afterTurn` is called behind what a turn of
   * the event loop has posted.
   */
  constructor(post: (frames: Uint8Array<ArrayBuffer>, count: number) => void, afterTurn: () => void = () => {}) {
    this.#post = post;
    this.#afterTurn = afterTurn;
  }

  frame(kind: number, call: number): this {
    if (this.#count === messageMaxFrames || this.#at >= messageFullBytes) this.flush();
    if (this.#at === 0) setImmediate(this.#endTurn);
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

  /** Texts of bytes, as headers are (latin1). */
  head(texts: readonly string[]): this {
    this.u32(texts.length);
    for (const text of texts) {
      this.u32(text.length).#room(text.length);
      this.#at += this.#bytes.write(text, this.#at, 'latin1');
    }
    return this;
  }

  #endTurn = (): void => {
    this.flush();
    this.#afterTurn();
  };

  flush(): void {
    if (this.#at === 0) return;
    const frames = this.#bytes.subarray(0, this.#at);
    // A busy turn is followed by one like it.
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

/**
 * Reads frames in the order in which they were written. Bytes that it hands out are a view, which keeps all frames of
 * the turn: copy what stays.
 */
export class FrameReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(frames: Uint8Array<ArrayBuffer>) {
    this.#bytes = Buffer.from(frames.buffer, frames.byteOffset, frames.length);
  }

  /** In bytes. */
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

  head(): string[] {
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
export interface ThreadCall {
  /** Does what a frame says; true: that was the last. */
  handle(kind: number, frame: FrameReader): boolean;
}

/** The header that is looked for where grpc-js refuses a call, which may be one that has begun. */
export const requestIdHeader = 'x-request-id';
