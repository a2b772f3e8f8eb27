import type { Socket } from 'node:net';

export interface PlaceBounds {
  /** Connections that have not shown that they are nodes of the cluster: probes, metrics, and whoever says nothing. */
  readonly strangersMax: number;
  /** The same from one address. */
  readonly strangersPerAddressMax: number;
  /** From the beginning of a connection until it has asked for something, or shown that it is a node. */
  readonly silentMaxMs: number;
}

interface Place {
  readonly address: string;
  timer: NodeJS.Timeout;
}

/**
 * The connections of a port that must always answer. A new one always gets a place: where there is none left, the
 * oldest stranger goes, of the address that has most of them. A probe asks within milliseconds of connecting, so those
 * that say nothing make room for it.
 */
export class ConnectionPlaces {
  readonly #bounds: PlaceBounds;
  readonly #all = new Set<Socket>();
  /** The oldest first. */
  readonly #strangers = new Map<Socket, Place>();
  /** Strangers by address, the oldest first. */
  readonly #byAddress = new Map<string, Set<Socket>>();

  constructor(bounds: PlaceBounds) {
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

  /** The connection ends so much later, whatever it does, unless it turns out to be a node before. */
  endAfter(socket: Socket, ms: number): void {
    const place = this.#strangers.get(socket);
    if (place === undefined) return;
    clearTimeout(place.timer);
    place.timer = this.#endLater(socket, ms);
  }

  /** It is a stranger no longer: it stays, and makes room for nobody. */
  keep(socket: Socket): void {
    const place = this.#strangers.get(socket);
    if (place === undefined) return;
    clearTimeout(place.timer);
    this.#strangers.delete(socket);
    const others = this.#byAddress.get(place.address);
    others?.delete(socket);
    if (others?.size === 0) this.#byAddress.delete(place.address);
  }

  /** Ends all. */
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
