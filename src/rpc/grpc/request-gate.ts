import { limits } from '../../limits.ts';

/** Lets grpc-js read the next message of a stream only as the ones before it were taken. */
export class RequestGate {
  #startRead: (() => void) | null = null;
  #isWanted = false;
  /** Messages that may still be read. */
  #messages = 0;
  /** Of those that were read and not taken. */
  #bytes = 0;

  /** How a read is begun. */
  set reader(startRead: () => void) {
    this.#startRead = startRead;
  }

  /** grpc-js wants the next message. */
  want(): void {
    this.#isWanted = true;
    this.#go();
  }

  /** So many more may be read, after messages of so many bytes were taken. */
  allow(messages: number, takenBytes = 0): void {
    this.#messages += messages;
    this.#bytes -= takenBytes;
    this.#go();
  }

  /** Whatever comes may be read: it is dropped. */
  open(): void {
    this.#bytes = Number.NEGATIVE_INFINITY;
    this.allow(Number.POSITIVE_INFINITY);
  }

  /** A message was read. */
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
