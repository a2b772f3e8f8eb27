import type { Socket } from 'node:net';
import { addressKey } from './address-key.ts';

interface ServingConnection {
  /** Whether a whole request has arrived whose answer is still to be made. */
  readonly isServing: boolean;
}

type Ends = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>;

interface Place {
  readonly socket: Socket;
  readonly address: string;
  /** null during a TLS handshake. */
  connection: ServingConnection | null;
}

/** How many connections a new one examines to find an idle one: each takes time of the thread. */
const examinedMax = 64;

/**
 * The connections of a port that anybody may connect to. If all places are taken, a new connection gets that of an idle
 * one: of its own address, if that has its equal part of the places, otherwise of an address with more, the most among
 * those examined. If none is found, the new one is closed.
 */
export class PublicConnections {
  readonly #max: number;
  /** By both ends. The least recently accepted or examined first. */
  readonly #places = new Map<string, Place>();
  /** The same of each address. */
  readonly #byAddress = new Map<string, Map<string, Place>>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#places.size;
  }

  /** Call it for each socket as it is accepted, below TLS. */
  take(socket: Socket): void {
    // A client that is gone already has no address.
    if (socket.remoteAddress === undefined) return void socket.destroy();
    const key = keyOf(socket);
    const address = addressKey(socket.remoteAddress);
    if (this.#places.size >= this.#max && !this.#makeRoom(address)) return void socket.destroy();
    const place: Place = { socket, address, connection: null };
    this.#places.set(key, place);
    const own = this.#byAddress.get(address);
    if (own === undefined) this.#byAddress.set(address, new Map([[key, place]]));
    else own.set(key, place);
    socket.once('close', () => this.#remove(key, place));
  }

  /** `socket`: the one that requests are read from, above TLS. */
  begun(socket: Ends, connection: ServingConnection): void {
    const place = this.#places.get(keyOf(socket));
    if (place !== undefined) place.connection = connection;
  }

  *sockets(): Generator<Socket> {
    for (const { socket } of this.#places.values()) yield socket;
  }

  destroyAll(): void {
    for (const socket of this.sockets()) socket.destroy();
  }

  #remove(key: string, place: Place): void {
    if (this.#places.get(key) !== place) return;
    this.#places.delete(key);
    const own = this.#byAddress.get(place.address);
    own?.delete(key);
    if (own?.size === 0) this.#byAddress.delete(place.address);
  }

  #makeRoom(address: string): boolean {
    const own = this.#byAddress.get(address);
    const has = own?.size ?? 0;
    const isBelowPart = own === undefined || (has + 1) * this.#byAddress.size <= this.#max;
    const found = isBelowPart ? this.#idleOf(this.#places, has + 1) : this.#idleOf(own, 0);
    if (found === null) return false;
    this.#remove(...found);
    found[1].socket.destroy();
    return true;
  }

  /** Of an address with more connections than `least`, the most among those examined. */
  #idleOf(places: Map<string, Place>, least: number): [key: string, place: Place] | null {
    let found: [key: string, place: Place] | null = null;
    let most = least;
    let left = Math.min(places.size, examinedMax);
    for (const [key, place] of places) {
      if (left === 0) break;
      left -= 1;
      // To the end, so that the next one examines others.
      places.delete(key);
      places.set(key, place);
      const count = this.#byAddress.get(place.address)?.size ?? 0;
      if (count <= most || place.connection?.isServing === true) continue;
      most = count;
      found = [key, place];
    }
    return found;
  }
}

function keyOf({ remoteAddress, remotePort, localAddress, localPort }: Ends): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
