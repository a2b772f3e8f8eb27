import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** An answer of the largest size with its headers, and as much again for what frames them. */
export const receivedMaxBytes = 128 * 1024;

/**
 * Counts what has come since the last request was sent. undici bounds the headers of each answer, but neither the
 * number of informational answers, nor a status line, nor what stands between the chunks of a body.
 */
class ReceivedBound {
  #sent = 0;
  #received = 0;
  #before = 0;

  /** Returns an error if too much has come. `sent`: bytes of requests. `received`: bytes of the raw socket. */
  check(sent: number, received: number): Error | null {
    if (sent !== this.#sent) {
      this.#sent = sent;
      this.#before = this.#received;
    }
    this.#received = received;
    return received - this.#before > receivedMaxBytes ? new Error('too much was received') : null;
  }
}

/** Destroys a socket without TLS once more than `receivedMaxBytes` have come since the last request was sent. */
export function boundReceived(socket: Socket): void {
  const bound = new ReceivedBound();
  // undici reads what has come when the socket is readable, and its listener is added after this one.
  socket.on('readable', () => {
    const error = bound.check(socket.bytesWritten, socket.bytesRead);
    if (error !== null) socket.destroy(error);
  });
}

/**
 * The stream between a raw socket and TLS. It counts all that comes, and is destroyed before TLS reads more than
 * `receivedMaxBytes` for a request. TLS raises no event for some messages, such as updates of keys.
 */
export class BoundedStream extends Duplex {
  readonly #raw: Socket;

  /** `sent` returns the bytes of requests so far. */
  constructor(raw: Socket, sent: () => number) {
    super();
    this.#raw = raw;
    const bound = new ReceivedBound();
    raw
      .on('data', (chunk) => {
        const error = bound.check(sent(), raw.bytesRead);
        if (error !== null) this.destroy(error);
        else if (!this.push(chunk)) raw.pause();
      })
      .on('end', () => this.push(null))
      .on('error', (error) => this.destroy(error))
      .on('close', () => {
        // What came before the end may not have been read yet.
        if (!raw.readableEnded) this.destroy();
      });
  }

  override _read(): void {
    this.#raw.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#raw.write(chunk, done);
  }

  override _final(done: () => void): void {
    this.#raw.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#raw.destroy();
    done(error);
  }
}
