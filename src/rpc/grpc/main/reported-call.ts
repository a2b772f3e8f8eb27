import { type FrameReader, type FrameWriter, workerCommand } from '../frames.ts';

const nothing = Buffer.alloc(0);

/** A call that the worker has reported, and the means to answer it. */
export class ReportedCall {
  /** Unix time, ms; Infinity if the caller set no deadline. */
  readonly deadline: number;
  /** The address of the caller's connection, as `address:port`. */
  readonly peer: string;
  /** Empty for a stream of requests, and until the request has arrived. */
  request: Buffer = nothing;
  /** Whether the request has begun and not ended. */
  isArriving: boolean;
  /** The caller's address, then names and values. */
  readonly #headers: readonly string[];
  readonly #number: number;
  readonly #writer: FrameWriter;
  readonly #ended: (number: number) => void;
  /** Whether the last frame was sent. The number may belong to another call then. */
  #isOver = false;

  /** `frame` is positioned after the method's number. `ended` is called with the call's last frame. */
  constructor(
    number: number,
    isArriving: boolean,
    frame: FrameReader,
    writer: FrameWriter,
    ended: (number: number) => void,
  ) {
    this.isArriving = isArriving;
    this.deadline = frame.f64();
    this.#headers = frame.head();
    this.peer = this.#headers[0] ?? '';
    if (!isArriving) this.request = Buffer.from(frame.bytes());
    this.#number = number;
    this.#writer = writer;
    this.#ended = ended;
  }

  header(name: string): string | undefined {
    const headers = this.#headers;
    for (let at = 1; at < headers.length; at += 2) if (headers[at] === name) return headers[at + 1];
    return undefined;
  }

  /** `head` holds names and values of headers. */
  answer(head: readonly string[], bytes: Uint8Array): void {
    this.#last(workerCommand.answer)?.head(head).bytes(bytes);
  }

  /** `details` is a serialized google.rpc.Status. */
  fail(status: number, head: readonly string[], message: string, details: Uint8Array): void {
    this.#last(workerCommand.fail)?.u8(status).head(head).bytes(Buffer.from(message)).bytes(details);
  }

  start(head: readonly string[]): void {
    this.#frame(workerCommand.headers)?.head(head);
  }

  send(bytes: Uint8Array): void {
    this.#frame(workerCommand.send)?.bytes(bytes);
  }

  end(): void {
    this.#last(workerCommand.end);
  }

  /** Allows `count` more requests. `takenBytes` are the bytes of earlier ones that were taken. */
  grant(count: number, takenBytes: number): void {
    this.#frame(workerCommand.grant)?.u32(count).u32(takenBytes);
  }

  /** The rest of the request may come. */
  admit(): void {
    this.#frame(workerCommand.admitted);
  }

  arrived(request: Buffer): void {
    this.request = request;
    this.isArriving = false;
  }

  drop(): void {
    this.#frame(workerCommand.drop);
  }

  #frame(kind: number): FrameWriter | null {
    return this.#isOver ? null : this.#writer.frame(kind, this.#number);
  }

  #last(kind: number): FrameWriter | null {
    const frame = this.#frame(kind);
    if (frame !== null) this.#ended(this.#number);
    this.#isOver = true;
    return frame;
  }
}
