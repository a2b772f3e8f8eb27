import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import { bearer, keyedEntityId, listeningNodeForTests, masterId } from '../../../support/listening-node.ts';
import { openTextSocket, sampleMost, type TextSocket } from '../../../support/raw-http.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const memory = new MemoryBudget(16 * MiB);
/** What bodies that have begun and not ended may hold together. */
const share = 4 * MiB;

const handlers = {
  'HealthService.GetHealth': async () => ({ status: 'ok' }),
  'MasterService.AppendEvent': async () => ({ seq: 1n }),
  'MasterService.ListMasters': async () => ({}),
};
const node = await listeningNodeForTests({ grpc: false, handlers, memory });

const clients: TextSocket[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  // Whatever happened to a body, nothing stays counted for it.
  await expect.poll(() => memory.heldBytes()).toBe(0);
});

function open(): TextSocket {
  const client = openTextSocket(node.http.port);
  clients.push(client);
  return client;
}

const appendPath = `/v1/traceledger/master/${masterId}/events`;
/** A method that asks for no credential. */
const healthPath = '/svc.v1.HealthService/GetHealth';
const head = (verb: string, path: string, ...headers: string[]) =>
  [`${verb} ${path} HTTP/1.1`, 'Host: a', 'Content-Type: application/json', ...headers].join('\r\n');
const authorization = `Authorization: ${bearer.authorization}`;
const inChunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

/** A connection with a body of 1 MiB of which only `bytes` come. */
function beginBody(bytes: number): TextSocket {
  const client = open();
  client.write(`${head('POST', healthPath, `Content-Length: ${MiB}`)}\r\n\r\n${'x'.repeat(bytes)}`);
  return client;
}

/** The status of an honest append whose body comes in two parts with a pause between them. */
async function appendInParts(payloadBytes: number): Promise<string | undefined> {
  const client = open();
  const body = JSON.stringify({ event_type: 'A', payload: { x: 'y'.repeat(payloadBytes) } });
  client.write(`${head('POST', appendPath, authorization, 'Transfer-Encoding: chunked')}\r\n\r\n`);
  client.write(inChunk(body.slice(0, -10)));
  await delay(30);
  client.write(`${inChunk(body.slice(-10))}0\r\n\r\n`);
  await expect.poll(() => client.text !== '' || client.destroyed).toBe(true);
  return /^HTTP\/1.1 (\d{3})/.exec(client.text)?.[1];
}

async function appendAtOnce(payloadBytes: number): Promise<number> {
  const body = JSON.stringify({ event_type: 'A', payload: { x: 'y'.repeat(payloadBytes) } });
  const headers = { ...bearer, 'content-type': 'application/json' };
  return (await fetch(node.base + appendPath, { method: 'POST', headers, body })).status;
}

test('a route that takes no body holds none of its bytes', async () => {
  const answers = Array.from({ length: 40 }, () => {
    const client = open();
    client.write(`${head('GET', '/v1/health', `Content-Length: ${MiB}`)}\r\n\r\n${'x'.repeat(MiB - 1)}`);
    return client;
  });
  const most = sampleMost(() => memory.heldBytes('request') + memory.heldBytes('small'));
  await expect.poll(() => answers.every((client) => client.writableLength === 0)).toBe(true);
  await delay(100);
  expect(most()).toBe(0);
  expect(answers.map((client) => client.text)).toEqual(answers.map(() => ''));
  // The body ends, and with it the wait: it is ignored as ever.
  for (const client of answers) client.write('x');
  for (const client of answers) await expect.poll(() => client.text).toContain('HTTP/1.1 200 OK');
});

test('a body that no route takes has the same size limit as others', async () => {
  const client = open();
  client.write(`${head('GET', '/v1/health', 'Transfer-Encoding: chunked')}\r\n\r\n${inChunk('x'.repeat(MiB + 1))}`);
  await expect.poll(() => client.text).toContain('payload_too_large');
});

test('a signature covers the body of a route that takes none', async () => {
  const body = 'x'.repeat(200 * KiB);
  const client = open();
  const headers = [`X-Actor-Id: ${keyedEntityId}`, 'X-Actor-Type: device', `X-Timestamp: ${new Date().toISOString()}`];
  headers.push('X-Actor-Sig: good-signature', `Content-Length: ${body.length}`);
  client.write(`${head('GET', '/v1/traceledger/master?ledger_id=x', ...headers)}\r\n\r\n${body}`);
  await expect.poll(() => client.text).toContain('HTTP/1.1 ');
  expect(node.credentials.verified.at(-1)?.bodyHash).toBe(createHash('sha256').update(body).digest('hex'));
});

test('several hundred unfinished bodies hold a quarter of the budget, and honest ones are answered', async () => {
  let isOver = false;
  const attackers = Array.from({ length: 300 }, async () => {
    while (!isOver) {
      const client = beginBody(100 * KiB);
      // One that was refused or ended begins again.
      while (!isOver && client.text === '' && !client.destroyed) await delay(50);
      client.destroy();
      clients.splice(clients.indexOf(client), 1);
      await delay(500);
    }
  });
  const most = sampleMost(() => memory.heldBytes('request'));
  const answers: unknown[] = [];
  try {
    await expect.poll(() => memory.heldBytes('request')).toBeGreaterThan(share / 2);
    for (let at = 0; at < 10; at += 1) {
      answers.push(await appendInParts(2_000), await appendAtOnce(30_000));
      await delay(20);
    }
  } finally {
    isOver = true;
    await Promise.all(attackers);
  }
  expect(answers).toEqual(Array.from({ length: 10 }, () => ['200', 200]).flat());
  // The honest bodies come on top, once they have ended.
  expect(most()).toBeLessThanOrEqual(share + 64 * KiB);
});

test('if a connection that holds less needs room, the one that holds most ends', async () => {
  const large = beginBody(MiB - 1);
  await expect.poll(() => memory.heldBytes('request')).toBe(MiB);
  const others = Array.from({ length: 5 }, () => beginBody(600 * KiB));
  await expect.poll(() => memory.heldBytes('request')).toBe(4_024 * KiB);
  expect(await appendInParts(100 * KiB)).toBe('200');
  await expect.poll(() => large.destroyed).toBe(true);
  expect(large.text).toBe('');
  expect(others.every(({ destroyed, text }) => !destroyed && text === '')).toBe(true);
});

test('if the share is full, a connection above its part is refused and holds nothing more', async () => {
  const others = Array.from({ length: 40 }, () => beginBody(90 * KiB));
  await expect.poll(() => memory.heldBytes('request')).toBe(3_600 * KiB);
  const greedy = beginBody(900 * KiB);
  await expect.poll(() => greedy.text).toContain('overloaded');
  expect(memory.heldBytes('request')).toBe(3_600 * KiB);
  expect(others.every(({ destroyed, text }) => !destroyed && text === '')).toBe(true);
});
