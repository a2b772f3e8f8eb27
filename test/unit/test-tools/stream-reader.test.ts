import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterAll, expect, test } from 'vitest';
import { StreamReader } from '../../cluster/load/stream-reader.ts';
import { SeededRandom } from '../../simulation/random.ts';
import { onLoopback } from '../../support/loopback.ts';

const hashOf = (seq: number) => String(seq).repeat(64).slice(0, 64);

function block(seq: number, verified = true): string {
  const data = { event: { seq, payload: { n: 1 }, hash: hashOf(seq) }, integrity: { verified, issues: [] } };
  return `id: ${seq}\nevent: event\ndata: ${JSON.stringify(data)}\n\n`;
}

let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {};
const server = createServer((request, response) => answer(request, response));
const port = await onLoopback(server);
afterAll(() => void server.close());

function reader() {
  const seen: (readonly [number, string])[] = [];
  const broken: string[] = [];
  const stream = new StreamReader({
    url: new URL(`http://127.0.0.1:${port}/follow?after_seq=-1`),
    apiKey: 'key',
    random: new SeededRandom(1),
    event: (seq, hash) => void seen.push([seq, hash]),
    again: () => {},
    broken: (what) => void broken.push(what),
  });
  return { stream, seen, broken };
}

test('a reader of streams resumes behind the last id, and hands on what comes again', async () => {
  const resumed: (string | string[] | undefined)[] = [];
  answer = (request, response) => {
    resumed.push(request.headers['last-event-id']);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (resumed.length === 1) {
      const text = `retry: 2000\n: a comment\n\n${block(0)}${block(1)}`;
      response.write(text.slice(0, 100));
      setImmediate(() => response.write(text.slice(100), () => response.destroy()));
    } else response.write(`${block(1)}id: 3\nevent: heartbeat\ndata: {}\n\n${block(4)}`);
  };
  const { stream, seen, broken } = reader();
  const ended = stream.run();
  await expect.poll(() => seen).toEqual([0, 1, 1, 4].map((seq) => [seq, hashOf(seq)]));
  stream.stop();
  await ended;
  expect([resumed, broken]).toEqual([[undefined, '1'], []]);
});

test('a reader of streams reports events with issues, ends with an error, and refusals, but not a node that is away', async () => {
  const answers: readonly [number, string][] = [
    [503, '{}'],
    [200, block(0, false)],
    [200, 'event: error\ndata: {"error":{"code":"unavailable"}}\n\n'],
    [200, 'event: error\ndata: {"error":{"code":"internal"}}\n\n'],
    [403, '{}'],
  ];
  let asked = 0;
  answer = (_, response) => {
    const [status, text] = answers[asked] ?? [200, ''];
    asked += 1;
    response.writeHead(status).end(text);
  };
  const { stream, broken } = reader();
  const ended = stream.run();
  await expect.poll(() => asked).toBeGreaterThan(answers.length);
  stream.stop();
  await ended;
  expect(broken.map((what) => what.slice(0, 30))).toEqual([
    expect.stringMatching(/^an event was sent with issues/),
    expect.stringMatching(/^a stream ended: event: error/),
    'a stream was answered 403',
  ]);
});
