/**
 * How many frames the thread has posted that the main thread has not handled. Both share it. A client that opens calls
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
   * Called by the thread. Adds `frames`, and blocks while more than `max` are not handled, for `maxMs` at most. Clients
   * wait meanwhile: nobody reads their sockets. Returns how long it has blocked, in ms.
   */
  addAndWait(frames: number, max: number, maxMs: number): number {
    let count = Atomics.add(this.#count, 0, frames) + frames;
    if (count <= max) return 0;
    const beganMs = performance.now();
    let waitedMs = 0;
    while (count > max && waitedMs < maxMs) {
      Atomics.wait(this.#count, 0, count, maxMs - waitedMs);
      count = Atomics.load(this.#count, 0);
      waitedMs = performance.now() - beganMs;
    }
    return waitedMs;
  }

  /** Called by the main thread. */
  remove(frames: number): void {
    Atomics.sub(this.#count, 0, frames);
    Atomics.notify(this.#count, 0);
  }
}
