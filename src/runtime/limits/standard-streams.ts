import { limits } from './limits.ts';

interface StandardStream {
  /** Ends the stream for a newer one. */
  displace(): void;
}

/**
 * The open streams of health and reflection of one port. They need no credential and must not use up the places of
 * other calls: beyond the bound of a connection, or of the port, the oldest one ends for a new one.
 */
export class StandardStreams {
  /** Oldest first. */
  readonly #all = new Map<StandardStream, Set<StandardStream>>();
  readonly #byConnection = new WeakMap<object, Set<StandardStream>>();

  add(connection: object, stream: StandardStream): void {
    const own = this.#byConnection.get(connection) ?? new Set();
    this.#byConnection.set(connection, own.add(stream));
    this.#all.set(stream, own);
    if (own.size > limits.connectionStandardStreamsMax) this.#displaceOldest(own.values());
    else if (this.#all.size > limits.standardStreamsMax) this.#displaceOldest(this.#all.keys());
  }

  #displaceOldest(streams: Iterable<StandardStream>): void {
    const [oldest] = streams;
    if (oldest === undefined) return;
    this.remove(oldest);
    oldest.displace();
  }

  remove(stream: StandardStream): void {
    this.#all.get(stream)?.delete(stream);
    this.#all.delete(stream);
  }
}
