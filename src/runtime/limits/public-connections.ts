import type { Socket } from 'node:net';
import { addressKey } from './address-key.ts';

interface ServingConnection {
  /** Whether a whole request has arrived that is not answered yet. */
  readonly isServing: boolean;
}

type RemoteEnd = Pick<Socket, 'remoteAddress' | 'remotePort'>;

interface Place {
  readonly socket: Socket;
  readonly address: string;
  /** null during a TLS handshake. */
  connection: ServingConnection | null;
}

/** How many connections a new one examines to find an idle one: each takes time of the main thread. */
const examinedMax = 64;

/**
 * The connections of a port that anybody may connect to. If all places are taken, a new connection gets that of an idle
 * one: of its own address, if that has its equal part of the places, otherwise of the address that has most. If none of
 * those examined is idle, the new one is closed.
 */
export class PublicConnections {
  readonly #max: number;
  /** By remote address and port. */
  readonly #places = new Map<string, Place>();
  /** Of each address, the least recently accepted or examined first. */
  readonly #byAddress = new Map<string, Map<string, Place>>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#places.size;
  }

  /** Call it for each socket as it is accepted, below TLS. */
  take(socket: Socket): void {
    const key = keyOf(socket);
    // A client that is gone already has no address.
    if (socket.remoteAddress === undefined) return void socket.destroy();
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
  begun(socket: RemoteEnd, connection: ServingConnection): void {
    const place = this.#places.get(keyOf(socket));
    if (place !== undefined) place.connection = connection;
  }

  #remove(key: string, place: Place): void {
    if (this.#places.get(key) !== place) return;
    this.#places.delete(key);
    const own = this.#byAddress.get(place.address);
    own?.delete(key);
    if (own?.size === 0) this.#byAddress.delete(place.address);
  }

  #makeRoom(address: string): boolean {
    const has = this.#byAddress.get(address)?.size ?? 0;
    const isBelowPart = (has + 1) * this.#byAddress.size <= this.#max;
    const places = this.#byAddress.get(isBelowPart ? this.#mostTaken() : address) ?? new Map<string, Place>();
    let examined = 0;
    for (const [key, place] of places) {
      if (place.connection?.isServing !== true) {
        this.#remove(key, place);
        place.socket.destroy();
        return true;
      }
      examined += 1;
      if (examined === examinedMax) return false;
      places.delete(key);
      places.set(key, place);
    }
    return false;
  }

  #mostTaken(): string {
    let [most, count] = ['', 0];
    for (const [address, { size }] of this.#byAddress) if (size > count) [most, count] = [address, size];
    return most;
  }
}

function keyOf({ remoteAddress, remotePort }: RemoteEnd): string {
  return `${remoteAddress} ${remotePort}`;
}
