import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { pages } from '../../../../src/node/pages.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { bearer, listeningNodeForTests, masterId } from '../../../support/listening-node.ts';
import { openSocket, openTextSocket, sampleMost, type TextSocket } from '../../../support/raw-http.ts';

const memory = new MemoryBudget(64 * 1024 * 1024);
/** What the two methods do; each test sets its own. */
let health: () => Promise<object>;
let append: (payload: string) => Promise<object>;
const handlers = {
  'HealthService.GetHealth': () => health(),
  'MasterService.AppendEvent': ({ payload }: { payload: string }) => append(payload),
};
const node = await listeningNodeForTests({ grpc: false, handlers, memory, pages });

const sockets: Socket[] = [];
/** Lets the calls end that a test has held. */
let letGo = () => {};
beforeEach(() => {
  health = async () => ({ status: 'ok' });
  letGo = () => {};
  append = async () => ({ seq: 1n });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  health = async () => ({ status: 'ok' });
  letGo();
  // Whatever happened to a connection, nothing stays counted for it.
  await expect.poll(() => memory.heldBytes()).toBe(0);
});

function open(): TextSocket {
  const socket = openTextSocket(node.http.port);
  sockets.push(socket);
  return socket;
}

const ask = (id: string, header = '') => `GET /v1/health HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\n${header}\r\n`;
/** The request ids of all answers, in order. */
const answered = ({ text }: { text: string }) => [...text.matchAll(/^x-request-id: (\S+)\r$/gim)].map(([, id]) => id);
const ids = (count: number) => Array.from({ length: count }, (_, at) => `request-${at}`);
const askAll = (count: number, header?: string) =>
  ids(count)
    .map((id) => ask(id, header))
    .join('');
/** The statuses of all answers, in order. */
const statuses = ({ text }: TextSocket) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);

/** Calls of health wait for `letGo`. */
function holdHealth() {
  const held = { underWay: 0, most: 0 };
  const waiting: (() => void)[] = [];
  health = async () => {
    held.underWay += 1;
    held.most = Math.max(held.most, held.underWay);
    await new Promise<void>((resolve) => waiting.push(resolve));
    held.underWay -= 1;
    return { status: 'ok' };
  };
  letGo = () => {
    for (const go of waiting.splice(0)) go();
  };
  return held;
}

test('four requests of a connection are served at a time; the others wait, and all are answered in order', async () => {
  const held = holdHealth();
  const socket = open();
  socket.write(askAll(20));
  await expect.poll(() => held.underWay).toBe(limits.httpUnderWayMax);
  await delay(50);
  expect(held.underWay).toBe(limits.httpUnderWayMax);
  expect(memory.heldBytes('call')).toBeGreaterThan(16 * 4_096);
  const going = setInterval(letGo, 1);
  await expect.poll(() => answered(socket)).toEqual(ids(20));
  clearInterval(going);
  expect(held.most).toBe(limits.httpUnderWayMax);
});

test('requests of another connection do not wait for these', async () => {
  const held = holdHealth();
  open().write(askAll(20));
  await expect.poll(() => held.underWay).toBe(limits.httpUnderWayMax);
  open().write(ask('other'));
  await expect.poll(() => held.underWay).toBe(limits.httpUnderWayMax + 1);
});

test('a connection that sends 1,500 small requests ahead ends; the rest is not parsed, and nothing is held', async () => {
  const held = holdHealth();
  let parsed = 0;
  const count = () => {
    parsed += 1;
  };
  subscribe('http.server.request.start', count);
  const socket = open();
  socket.write('GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_500));
  await once(socket, 'close');
  unsubscribe('http.server.request.start', count);
  expect(parsed).toBe(limits.httpUnderWayMax + limits.httpWaitingMax + 1);
  expect(held.most).toBe(limits.httpUnderWayMax);
  await expect.poll(() => memory.heldBytes()).toBe(0);
  letGo();
  await expect.poll(() => node.pipeline.running.size).toBe(0);
});

test('a client that pipelines 2,000 requests of ordinary size is read as it is served, and answered in full', async () => {
  // Otherwise no request would ever wait, and nothing would stop reading.
  health = async () => {
    await immediate();
    return { status: 'ok' };
  };
  const socket = open();
  const header = `X-Padding: ${'x'.repeat(1_500)}\r\n`;
  socket.write(askAll(2_000, header));
  await expect.poll(() => answered(socket).length, { timeout: 20_000 }).toBe(2_000);
  expect(answered(socket)).toEqual(ids(2_000));
});

test('bodies of pipelined requests arrive whole, each with its request', async () => {
  const seen: number[] = [];
  append = async (payload) => {
    seen.push(payload.length);
    await delay(1);
    return { seq: 1n };
  };
  const request = (size: number) => {
    const body = JSON.stringify({ event_type: 'A', payload: { x: 'y'.repeat(size) } });
    const head = [`POST /v1/traceledger/master/${masterId}/events HTTP/1.1`, 'Host: a'];
    head.push(`Authorization: ${bearer.authorization}`, 'Content-Type: application/json');
    return `${head.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  const sizes = Array.from({ length: 40 }, (_, at) => (at % 5 === 0 ? 200_000 : 10 * at));
  const socket = open();
  socket.write(sizes.map(request).join(''));
  await expect.poll(() => socket.text.match(/HTTP\/1.1 200 OK/g)?.length, { timeout: 20_000 }).toBe(sizes.length);
  expect(seen.sort()).toEqual(sizes.map((size) => size + '{"x":""}'.length).sort());
});

test('a connection that asks 1,500 times for openapi.json and reads nothing makes the node hold no copy of it', async () => {
  const socket = openSocket(node.http.port);
  sockets.push(socket);
  const request = `GET /openapi.json HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(2_000)}\r\n\r\n`;
  const most = sampleMost(() => memory.heldBytes('answer'));
  socket.pause().write(request.repeat(1_500));
  await delay(500);
  expect(memory.heldBytes('call')).toBeGreaterThan(0);
  expect(most()).toBe(0);
});

test('bytes that are no HTTP after requests are answered after these', async () => {
  const held = holdHealth();
  const socket = open();
  socket.write(`${askAll(6)}no HTTP at all\r\n\r\n`);
  await expect.poll(() => held.underWay).toBe(limits.httpUnderWayMax);
  await delay(20);
  expect(socket.text).toBe('');
  const going = setInterval(letGo, 1);
  await once(socket, 'close');
  clearInterval(going);
  expect(answered(socket).slice(0, 6)).toEqual(ids(6));
  expect(statuses(socket)).toEqual([...Array(6).fill('200'), '400']);
});

test('a CONNECT after requests is answered after these', async () => {
  const held = holdHealth();
  const socket = open();
  socket.write(`${ask('one')}CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`);
  await expect.poll(() => held.underWay).toBe(1);
  await delay(20);
  expect(socket.text).toBe('');
  letGo();
  await once(socket, 'close');
  expect(statuses(socket)).toEqual(['200', '405']);
});

test('a client that sends a CONNECT and resets its connection ends nothing else', async () => {
  const errors: unknown[] = [];
  const note = (error: unknown) => void errors.push(error);
  process.on('uncaughtExceptionMonitor', note);
  const held = holdHealth();
  const socket = open();
  socket.write(`${ask('one')}CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`);
  await expect.poll(() => held.underWay).toBe(1);
  socket.resetAndDestroy();
  await delay(50);
  letGo();
  await delay(50);
  process.off('uncaughtExceptionMonitor', note);
  expect(errors).toEqual([]);
});
