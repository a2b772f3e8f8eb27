/**
 * How much the worker has posted that the main thread has not handled, in memory that both share. A client that opens
 * calls and resets them holds nothing, so no other bound stops the worker from posting too fast.
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
   * Adds a message, and blocks the worker while more than `maxKib` are not handled, for at most `maxMs`. The sockets
   * are not read meanwhile. Returns how long it has blocked, in ms.
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

  /** Called by the main thread, with the size that the worker added. */
  remove(messageKib: number): void {
    Atomics.sub(this.#kib, 0, messageKib);
    Atomics.notify(this.#kib, 0);
  }
}

/** What a frame counts beside its bytes: its work on the main thread hardly depends on its size. */
const frameKib = 4;

export function backlogKib(frames: number, bytes: number): number {
  return frames * frameKib + Math.ceil(bytes / 1024);
}
