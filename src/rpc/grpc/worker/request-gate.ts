import { limits } from '../../../runtime/limits/limits.ts';

/**
 * Lets grpc-js read the next message of a stream only once earlier ones were taken. This is the back-pressure of
 * request streams.
 */
export class RequestGate {
  #startRead: (() => void) | null = null;
  #isWanted = false;
  /** How many more messages may be read. */
  #messages = 0;
  /** Bytes of messages that were read and not taken. */
  #bytes = 0;

  /** The function that begins a read. */
  set reader(startRead: () => void) {
    this.#startRead = startRead;
  }

  /** Called when grpc-js wants the next message. */
  want(): void {
    this.#isWanted = true;
    this.#go();
  }

  /** Allows `messages` more reads. `takenBytes` are the bytes of earlier messages that were taken. */
  allow(messages: number, takenBytes = 0): void {
    this.#messages += messages;
    this.#bytes -= takenBytes;
    this.#go();
  }

  /** Allows everything to be read, because it is dropped. */
  open(): void {
    this.#bytes = Number.NEGATIVE_INFINITY;
    this.allow(Number.POSITIVE_INFINITY);
  }

  /** Counts a message that was read. */
  read(bytes: number): void {
    this.#bytes += bytes;
  }

  #go(): void {
    if (!this.#isWanted || this.#messages <= 0 || this.#bytes >= limits.streamReadAheadBytes) return;
    this.#isWanted = false;
    this.#messages -= 1;
    this.#startRead?.();
  }
}
