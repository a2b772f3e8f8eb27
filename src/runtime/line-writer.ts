/** Writes a chunk somewhere; `done` is called once. It gets one chunk at a time. */
export type WriteChunk = (chunk: Buffer, done: (error: Error | null) => void) => void;

/** A line waits no longer than this for others to be written with. */
const lineWaitMaxMs = 50;
/** As much as this is written at once, bytes. */
const chunkMinBytes = 4_096;
const chunkMaxCharacters = 65_536;
/** After a write that failed, as on a full disk. */
const retryMs = 1_000;

/** Lines that wait for a reader or a disk, bytes: some 15,000 lines of the log. Beyond it lines are dropped. */
export const waitingLinesMaxBytes = 4 * 1024 * 1024;

/**
 * Writes lines behind their back: nobody waits for it, and it never throws. Invariant: no more than `maxBytes` and one chunk are held. Lines
 * beyond that, and lines whose write failed, are dropped and counted; once lines are written again `tellDropped` is told how many.
 */
export class LineWriter {
  readonly #write: WriteChunk;
  readonly #maxBytes: number;
  readonly #isForGood: (error: Error) => boolean;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  /** A write has failed a moment ago. */
  #isResting = false;
  /** Nobody will ever read what is written. */
  #isClosed = false;
  #timer: NodeJS.Timeout | null = null;
  #dropped = 0;
  #untold = 0;
  /** Set once the writer is to end: resolved when nothing waits any more. */
  #ended: PromiseWithResolvers<void> | null = null;
  /** Is told how many lines were dropped, when lines are written again; it may write a line that says so. */
  tellDropped: (lines: number) => void = () => {};

  /** `isForGood`: whether a write that failed so will always fail. */
  constructor(write: WriteChunk, maxBytes: number, isForGood: (error: Error) => boolean) {
    this.#write = write;
    this.#maxBytes = maxBytes;
    this.#isForGood = isForGood;
  }

  /** Lines that were dropped so far. */
  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#isClosed || this.#waitingBytes + bytes > this.#maxBytes) {
      this.#drop(1);
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += bytes;
    this.#goOn();
  }

  /** Resolves when all lines are written or dropped, or after `maxMs`. */
  async end(maxMs: number): Promise<void> {
    if (this.#waiting.length === 0 && !this.#isWriting) return;
    const ended = Promise.withResolvers<void>();
    this.#ended = ended;
    const timer = setTimeout(ended.resolve, maxMs);
    this.#flush();
    await ended.promise;
    clearTimeout(timer);
  }

  /** For a process that ends at this moment: takes what waits, or null while a chunk is under way. */
  takeRest(): Buffer | null {
    return this.#isWriting || this.#waiting.length === 0 ? null : this.#take(this.#waiting.length);
  }

  #goOn(): void {
    if (this.#waitingBytes >= chunkMinBytes) this.#flush();
    else if (this.#waitingBytes > 0) this.#flushAfter(lineWaitMaxMs);
  }

  #flushAfter(delayMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#isResting = false;
      this.#flush();
    }, delayMs).unref();
  }

  #flush(): void {
    if (this.#isWriting || this.#isResting || this.#waiting.length === 0) return;
    let count = 0;
    for (let length = 0; count < this.#waiting.length && length < chunkMaxCharacters; count++)
      length += this.#waiting[count]?.length ?? 0;
    this.#isWriting = true;
    this.#write(this.#take(count), (error) => this.#wrote(count, error));
  }

  #take(count: number): Buffer {
    const chunk = Buffer.from(this.#waiting.splice(0, count).join(''));
    this.#waitingBytes -= chunk.length;
    return chunk;
  }

  #wrote(lines: number, error: Error | null): void {
    this.#isWriting = false;
    if (error !== null) this.#failed(lines, error);
    // Only where there is room: the line that says it must not be dropped itself.
    else if (this.#untold > 0 && this.#waitingBytes <= this.#maxBytes / 2) this.#tell();
    if (this.#waiting.length === 0) this.#ended?.resolve();
    else if (this.#ended === null) this.#goOn();
    else this.#flush();
  }

  #failed(lines: number, error: Error): void {
    this.#drop(lines);
    if (this.#isForGood(error)) {
      this.#isClosed = true;
      this.#drop(this.#waiting.length);
      this.#waiting = [];
      this.#waitingBytes = 0;
      return;
    }
    this.#isResting = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#flushAfter(retryMs);
  }

  #drop(lines: number): void {
    this.#dropped += lines;
    this.#untold += lines;
  }

  #tell(): void {
    const lines = this.#untold;
    this.#untold = 0;
    this.tellDropped(lines);
  }
}
