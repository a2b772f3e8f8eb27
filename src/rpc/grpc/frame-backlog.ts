/**
 * Frames that the thread has posted and the main thread has not yet handled. Shared by both. A client that opens calls
 * and resets them holds nothing, so no other bound stops it from posting faster than the main thread handles.
 */
export class FrameBacklog {
  readonly #count: Int32Array<SharedArrayBuffer>;

  constructor(shared = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.#count = new Int32Array(shared);
  }

  get shared(): SharedArrayBuffer {
    return this.#count.buffer;
  }

  /**
   * Of the thread: counts frames that were posted, and blocks the thread while there are more than `max`. The clients
   * wait meanwhile: nobody reads their sockets. It goes on after `maxMs`, so that a main thread that stalls does not
   * stop the keepalives.
   */
  posted(frames: number, max: number, maxMs: number): void {
    let count = Atomics.add(this.#count, 0, frames) + frames;
    const endMs = performance.now() + maxMs;
    while (count > max) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0 || Atomics.wait(this.#count, 0, count, leftMs) === 'timed-out') return;
      count = Atomics.load(this.#count, 0);
    }
  }

  /** Of the main thread: it has handled so many. */
  handled(frames: number): void {
    Atomics.sub(this.#count, 0, frames);
    Atomics.notify(this.#count, 0);
  }
}
