/** `done` is called once. The next chunk comes only after that. */
export type WriteChunk = (chunk: Buffer, done: (error: Error | null) => void) => void;

/** The longest time that a line waits for other lines to be written with. */
const lineWaitMaxMs = 50;
const chunkMinBytes = 4_096;
const chunkMaxCharacters = 65_536;
/** Pause after a failed write, for example on a full disk. */
const retryMs = 1_000;

/** Bytes of lines that wait: some 15,000 lines of the log. Further lines are dropped. */
export const waitingLinesMaxBytes = 4 * 1024 * 1024;

/**
 * Writes lines in the background: never blocks or throws. Invariant: holds no more than `maxBytes` and one chunk.
 * Further lines, and lines whose write failed, are dropped and counted.
 */
export class LineWriter {
  readonly #write: WriteChunk;
  readonly #maxBytes: number;
  readonly #isForGood: (error: Error) => boolean;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #isResting = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | null = null;
  #dropped = 0;
  #unreported = 0;
  /** Set by end(). Resolved when no line waits any more. */
  #ended: PromiseWithResolvers<void> | null = null;
  /** Gets the number of dropped lines once lines are written again. May write a line. */
  tellDropped: (lines: number) => void = () => {};

  /** `isForGood`: whether all later writes will fail after this error. */
  constructor(write: WriteChunk, maxBytes: number, isForGood: (error: Error) => boolean) {
    this.#write = write;
    this.#maxBytes = maxBytes;
    this.#isForGood = isForGood;
  }

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

  /** For a process that is exiting. null: no lines wait, or a chunk is being written. */
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
    // Only if there is room: the line about dropped lines must not be dropped itself.
    else if (this.#unreported > 0 && this.#waitingBytes <= this.#maxBytes / 2) this.#tell();
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
    this.#unreported += lines;
  }

  #tell(): void {
    const lines = this.#unreported;
    this.#unreported = 0;
    this.tellDropped(lines);
  }
}
