import { limits } from '../../../runtime/limits/limits.ts';

/** The back-pressure of request streams: grpc-js reads the next message only once earlier ones were taken. */
export class RequestGate {
  #startRead: (() => void) | null = null;
  #isWanted = false;
  /** How many more messages may be read. */
  #messages = 0;
  /** Bytes of messages that were read and not taken. */
  #bytes = 0;

  set reader(startRead: () => void) {
    this.#startRead = startRead;
  }

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
