import { createClient as createConnectClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { Agent } from 'undici';
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { SandboxService } from '../../src/gen/svc/v1/sandbox_pb.ts';
import type { Party } from '../../src/sandbox/party.ts';
import { type Step, tell } from '../../src/sandbox/steps.ts';
import { story } from '../../src/sandbox/story.ts';
import { skippedWebhookSteps, webhookSteps } from '../../src/sandbox/webhook-steps.ts';
import { nodeForTests } from '../support/node-for-tests.ts';
import { newParty } from '../support/parties.ts';
import { done, type Fields } from '../support/parties-rest.ts';
import { expectPassed } from '../support/sandbox-story.ts';
import { oneNodeTest } from '../support/several-nodes.ts';

const node = await nodeForTests();

const { signal } = new AbortController();

const run = (headers: Record<string, string> = {}, until = signal) =>
  fetch(`${node.base}/v1/sandbox/run`, { headers, signal: until });

test('a run returns plain text with a line for each step, and every step passes', async () => {
  const response = await run();
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; charset=utf-8$/i);
  expectPassed(await response.text());
});

test('the lines of a run are sent as they happen', async () => {
  const response = await run();
  if (response.body === null) throw new Error('no body');
  let pieces = 0;
  for await (const _ of response.body) pieces += 1;
  expect(pieces).toBeGreaterThan(5);
});

test('a run over SSE has the same lines', async () => {
  const response = await run({ accept: 'text/event-stream' });
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  const text = await response.text();
  const data = text
    .split('\n\n')
    .filter((block) => block.startsWith('data: '))
    .map((block) => block.slice('data: '.length));
  expectPassed(data.join('\n'));
});

oneNodeTest('of six concurrent runs four run at once and two wait, and all pass', async () => {
  const texts = await Promise.all(Array.from({ length: 6 }, async () => (await run()).text()));
  for (const text of texts) expectPassed(text);
  const waited = texts.filter((text) => text.startsWith('…'));
  expect(waited).toHaveLength(2);
});

test('an abandoned run blocks no other run', async () => {
  const transport = createConnectTransport({ baseUrl: node.base, httpVersion: '1.1' });
  const connect = createConnectClient(SandboxService, transport);
  await using grpc = createClient({ grpcUrl: `http://${node.grpcAddress}`, transport: 'grpc' });
  const transports = [
    async (signal: AbortSignal) => (await run({}, signal)).body ?? [],
    (signal: AbortSignal) => connect.runSandbox({}, { signal }),
    (signal: AbortSignal) => grpc.runSandbox({ signal }),
  ];
  for (const transport of [...transports, ...transports]) {
    const controller = new AbortController();
    const first = async () => {
      for await (const _ of await transport(controller.signal)) controller.abort();
    };
    await expect(first()).rejects.toThrow();
  }
  // None of them finds the places taken.
  const atOnce = async () => {
    const texts = await Promise.all(Array.from({ length: 4 }, async () => (await run()).text()));
    for (const text of texts) expectPassed(text);
    return texts.some((text) => text.startsWith('…'));
  };
  await expect.poll(atOnce, { timeout: 30_000 }).toBe(false);
});

test('a run that is broken off leaves no subscription in force', async () => {
  const steps = webhookSteps(() => true);
  let owner: Party | null = null;
  const hooks = {
    ...steps,
    subscribe(party: Party, ledgerId: () => string) {
      owner = party;
      return steps.subscribe(party, ledgerId);
    },
  };
  const inForce = async () => {
    const headers = { authorization: `Bearer ${owner?.apiKey}` };
    const { body } = await done(node.base, 'GET', '/v1/webhooks', { headers });
    return (body.subscriptions as Fields[]).map((subscription) => subscription.active);
  };
  for await (const line of tell(story({ baseUrl: node.base }, hooks, Date.now), signal)) {
    if (!line.includes('subscribes a webhook')) continue;
    expect(await inForce()).toEqual([true]);
    break;
  }
  expect(await inForce()).toEqual([false]);
});

test('a run makes actors and nothing else in the production world', async () => {
  const party = await newParty(node.base);
  const count = async (headers: Readonly<Record<string, string>>) => {
    for (let offset = 0; ; offset += 1_000) {
      const page = await done(node.base, 'GET', `/v1/network/actors?limit=1000&offset=${offset}`, { headers });
      const { length } = page.rows('actors');
      if (length < 1_000) return offset + length;
    }
  };
  const [sandbox, production] = [await count(party.bearer), await count(party.production.bearer)];
  await (await run()).text();
  expect(await count(party.bearer)).toBe(sandbox + 5);
  // Each registration makes an actor in either world; nothing else happens in production.
  expect(await count(party.production.bearer)).toBe(production + 5);
});

test('the client yields the lines of a run over REST and gRPC', async () => {
  for (const transport of ['rest', 'grpc'] as const) {
    await using client = createClient({ baseUrl: node.base, grpcUrl: `http://${node.grpcAddress}`, transport });
    const lines = await Array.fromAsync(client.runSandbox());
    expectPassed(lines.join('\n'));
  }
});

/** The lines of a run of which one step reads from a service that answers another path than was asked for. */
async function deceived(title: string, answered: (path: string) => string): Promise<string[]> {
  let isDeceiving = false;
  const agent = new Agent();
  const dispatcher = agent.compose(
    (dispatch) => (options, handler) =>
      dispatch(isDeceiving ? { ...options, path: answered(options.path) } : options, handler),
  );
  async function* watched(): AsyncIterable<Step> {
    for await (const step of story({ baseUrl: node.base, dispatcher }, skippedWebhookSteps('none'), Date.now)) {
      isDeceiving = step.title === title;
      yield step;
    }
  }
  const lines = await Array.fromAsync(tell(watched(), signal));
  await agent.close();
  return lines;
}

const noEvents = (path: string) =>
  path.includes('/events') ? `${path}${path.includes('?') ? '&' : '?'}event_type=NONE` : path;
const noKeys = (path: string) => path.replace(/svc(:|%3A)actor(:|%3A)[0-9a-f]{4}/i, 'svc$1actor$20000');

test.each([
  [
    'the bank sees the invoice, and of the shipment nothing',
    'no events of the ledger',
    (path: string) => (path.includes('/ledgers/') ? noEvents(path) : path),
  ],
  ['the buyer downloads the ledger and verifies it without trusting the server', 'no events', noEvents],
  ['the buyer downloads the ledger and verifies it without trusting the server', 'no keys', noKeys],
  ['the bank verifies its one master by itself', 'no events', noEvents],
])('the step “%s” fails if the service returns %s', async (title, _, answered) => {
  const lines = await deceived(title, answered);
  expect(lines.at(-2)).toMatch(`✗ ${title}`);
  expect(lines.at(-1)).toMatch(/^\d+ passed, 1 failed$/);
});
