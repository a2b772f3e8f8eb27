import type { Socket } from 'node:net';

interface ConnectionBounds {
  /** Connections that have not proved to be nodes: probes, metrics, and clients that send nothing. */
  readonly strangersMax: number;
  /** The same from one address. */
  readonly strangersPerAddressMax: number;
  /** Until a connection has sent a request or proved to be a node, ms. */
  readonly silentMaxMs: number;
}

interface Place {
  readonly address: string;
  timer: NodeJS.Timeout;
}

/**
 * The connections of a port that must always answer: a new one always gets a place. If its address, or the port, has
 * too many strangers, the oldest one of that address, or of the address with the most, is closed. A probe sends its
 * request within milliseconds, so those are connections that send nothing.
 */
export class ConnectionPlaces {
  readonly #bounds: ConnectionBounds;
  readonly #all = new Set<Socket>();
  /** Oldest first. */
  readonly #strangers = new Map<Socket, Place>();
  readonly #byAddress = new Map<string, Set<Socket>>();

  constructor(bounds: ConnectionBounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#all.size;
  }

  take(socket: Socket): void {
    const address = socket.remoteAddress ?? '';
    if ((this.#byAddress.get(address)?.size ?? 0) >= this.#bounds.strangersPerAddressMax) this.#makeRoom(address);
    if (this.#strangers.size >= this.#bounds.strangersMax) this.#makeRoom(this.#mostTaken());
    this.#all.add(socket);
    this.#strangers.set(socket, { address, timer: this.#endLater(socket, this.#bounds.silentMaxMs) });
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? new Set()).add(socket));
    socket.on('close', () => {
      this.#all.delete(socket);
      this.keep(socket);
    });
  }

  /** Closes the connection after `ms` unless it proves to be a node. */
  endAfter(socket: Socket, ms: number): void {
    const place = this.#strangers.get(socket);
    if (place === undefined) return;
    clearTimeout(place.timer);
    place.timer = this.#endLater(socket, ms);
  }

  /** The connection is never closed to make room any more. */
  keep(socket: Socket): void {
    const place = this.#strangers.get(socket);
    if (place === undefined) return;
    clearTimeout(place.timer);
    this.#strangers.delete(socket);
    const others = this.#byAddress.get(place.address);
    others?.delete(socket);
    if (others?.size === 0) this.#byAddress.delete(place.address);
  }

  end(): void {
    for (const socket of this.#all) socket.destroy();
  }

  #endLater(socket: Socket, ms: number): NodeJS.Timeout {
    return setTimeout(() => socket.destroy(), ms).unref();
  }

  #makeRoom(address: string): void {
    const [oldest] = this.#byAddress.get(address) ?? [];
    if (oldest === undefined) return;
    this.keep(oldest);
    oldest.destroy();
  }

  #mostTaken(): string {
    let most = '';
    let count = 0;
    for (const [address, { size }] of this.#byAddress) {
      if (size <= count) continue;
      most = address;
      count = size;
    }
    return most;
  }
}
