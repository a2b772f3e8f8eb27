import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { PublicConnections } from '../../../src/runtime/limits/public-connections.ts';

let port = 0;

class FakeSocket extends EventEmitter {
  readonly remoteAddress: string | undefined;
  readonly remotePort = ++port;
  destroyed = false;

  constructor(remoteAddress: string | undefined) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

/** New connections of an address, that serve a request or are idle. */
function opened(places: PublicConnections, address: string | undefined, count: number, isServing = false) {
  return Array.from({ length: count }, () => {
    const socket = new FakeSocket(address);
    places.take(socket as unknown as Socket);
    if (isServing) places.begun(socket, { isServing });
    return socket;
  });
}

const closed = (sockets: readonly FakeSocket[]): number[] =>
  sockets.flatMap(({ destroyed }, index) => (destroyed ? [index] : []));

test('a new connection takes the place of the oldest idle one of the address with most', () => {
  const places = new PublicConnections(10);
  const few = opened(places, '192.0.2.1', 2);
  const many = opened(places, '192.0.2.2', 8);
  expect(closed(opened(places, '192.0.2.3', 2))).toEqual([]);
  expect([closed(few), closed(many)]).toEqual([[], [0, 1]]);
  expect(places.size).toBe(10);
});

test('a new connection of an address with its part takes the place of one of its own', () => {
  const places = new PublicConnections(10);
  const few = opened(places, '192.0.2.1', 2);
  const many = opened(places, '192.0.2.2', 20);
  expect([closed(few), closed(many).length, closed(many).at(-1)]).toEqual([[], 12, 11]);
});

test('the addresses of one IPv6 network count as one', () => {
  const places = new PublicConnections(4);
  const one = opened(places, '192.0.2.1', 1);
  const network = ['a', 'b', 'c', 'd'].flatMap((host) => opened(places, `2001:db8:0:1::${host}`, 1));
  opened(places, '192.0.2.1', 1);
  expect([closed(one), closed(network)]).toEqual([[], [0, 1]]);
});

test('a connection that serves a request keeps its place, and the new one is closed if all examined ones do', () => {
  const places = new PublicConnections(100);
  const serving = opened(places, '192.0.2.2', 99, true);
  const idle = opened(places, '192.0.2.2', 1);
  // Each of the first two examines a part of the connections.
  const coming = opened(places, '192.0.2.1', 3);
  expect([closed(coming), closed(idle), closed(serving)]).toEqual([[0, 2], [0], []]);
});

test('a connection that has ended frees its place', () => {
  const places = new PublicConnections(2);
  const [first] = opened(places, '192.0.2.2', 2);
  first?.destroy();
  expect(closed(opened(places, '192.0.2.1', 1))).toEqual([]);
  expect(places.size).toBe(2);
});

test('a connection whose client is gone before it was accepted takes no place', () => {
  const places = new PublicConnections(2);
  expect(closed(opened(places, undefined, 1))).toEqual([0]);
  expect(places.size).toBe(0);
});
