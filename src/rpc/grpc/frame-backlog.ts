/**
 * How much the thread has posted that the main thread has not handled. Both share it. A client that opens calls and
 * resets them holds nothing, so no other bound stops it from posting faster than the main thread handles.
 */
export class FrameBacklog {
  readonly #kib: Int32Array<SharedArrayBuffer>;

  constructor(shared = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.#kib = new Int32Array(shared);
  }

  get shared(): SharedArrayBuffer {
    return this.#kib.buffer;
  }

  /**
   * Called by the thread. Adds a message, and blocks while more than `maxKib` are not handled, for `maxMs` at most.
   * Clients wait meanwhile: nobody reads their sockets. Returns how long it has blocked, in ms.
   */
  addAndWait(messageKib: number, maxKib: number, maxMs: number): number {
    let kib = Atomics.add(this.#kib, 0, messageKib) + messageKib;
    if (kib <= maxKib) return 0;
    const beganMs = performance.now();
    let waitedMs = 0;
    while (kib > maxKib && waitedMs < maxMs) {
      Atomics.wait(this.#kib, 0, kib, maxMs - waitedMs);
      kib = Atomics.load(this.#kib, 0);
      waitedMs = performance.now() - beganMs;
    }
    return waitedMs;
  }

  /** Called by the main thread, with the same size as the thread has added. */
  remove(messageKib: number): void {
    Atomics.sub(this.#kib, 0, messageKib);
    Atomics.notify(this.#kib, 0);
  }
}

/** What a frame counts beside its bytes: most ask the main thread for work that their size does not tell. */
const frameKib = 4;

/** The size of one message between the threads, as the backlog counts it. */
export function backlogKib(frames: number, bytes: number): number {
  return frames * frameKib + Math.ceil(bytes / 1024);
}
