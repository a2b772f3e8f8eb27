import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { nodeForTests } from '../support/node-for-tests.ts';
import { newParty } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';

const node = await nodeForTests();

const run = (headers: Record<string, string> = {}) => fetch(`${node.base}/v1/sandbox/run`, { headers });

/** A run that went well: a mark on each line, and the last one counts them. */
function expectPassed(text: string): void {
  const lines = text.trimEnd().split('\n');
  const steps = lines.filter((line) => !line.startsWith('…'));
  const last = steps.pop();
  expect(steps.filter((line) => !line.startsWith('✓ '))).toEqual([]);
  expect(last).toBe(`${steps.length} passed, 0 failed`);
  expect(steps.length).toBeGreaterThan(25);
}

test('a run is plain text, a line a step, and every step passes', async () => {
  const response = await run();
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; charset=utf-8$/i);
  expectPassed(await response.text());
});

test('its lines come as they happen', async () => {
  const response = await run();
  if (response.body === null) throw new Error('no body');
  let pieces = 0;
  for await (const _ of response.body) pieces += 1;
  expect(pieces).toBeGreaterThan(5);
});

test('as SSE it has the same lines', async () => {
  const response = await run({ accept: 'text/event-stream' });
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  const text = await response.text();
  const data = text
    .split('\n\n')
    .filter((block) => block.startsWith('data: '))
    .map((block) => block.slice('data: '.length));
  expectPassed(data.join('\n'));
});

test('six at once do not disturb each other: four run, two say that they wait', async () => {
  const texts = await Promise.all(Array.from({ length: 6 }, async () => (await run()).text()));
  for (const text of texts) expectPassed(text);
  const waited = texts.filter((text) => text.startsWith('…'));
  expect(waited).toHaveLength(2);
});

test('whoever hangs up leaves no run behind that others wait for', async () => {
  for (let round = 0; round < 6; round += 1) {
    const controller = new AbortController();
    const response = await fetch(`${node.base}/v1/sandbox/run`, { signal: controller.signal });
    await response.body?.getReader().read();
    controller.abort();
  }
  await new Promise((resolve) => setTimeout(resolve, 300));
  const texts = await Promise.all(Array.from({ length: 4 }, async () => (await run()).text()));
  for (const text of texts) expectPassed(text);
});

test('it works in the sandbox world: production sees none of its actors', async () => {
  const party = await newParty(node.base);
  const count = async (headers: Readonly<Record<string, string>>) =>
    (await done(node.base, 'GET', '/v1/network/actors?limit=1000', { headers })).body.count as number;
  const [sandbox, production] = [await count(party.bearer), await count(party.production.bearer)];
  await (await run()).text();
  expect(await count(party.bearer)).toBe(sandbox + 5);
  // Each registration makes an actor in either world; nothing else happens in production.
  expect(await count(party.production.bearer)).toBe(production + 5);
});

test('the client hands its lines out over REST and gRPC', async () => {
  for (const transport of ['rest', 'grpc'] as const) {
    await using client = createClient({ baseUrl: node.base, grpcUrl: `http://${node.grpcAddress}`, transport });
    const lines: string[] = [];
    for await (const line of client.runSandbox()) lines.push(line);
    expectPassed(lines.join('\n'));
  }
});
