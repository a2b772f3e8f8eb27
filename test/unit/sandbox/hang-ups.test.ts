import { createServer } from 'node:http';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { createClient as createLedgerTrustClient } from '../../../src/client/client.ts';
import { SandboxService } from '../../../src/gen/svc/v1/sandbox_pb.ts';
import { sandboxService } from '../../../src/sandbox/sandbox-service.ts';
import { type Step, tell } from '../../../src/sandbox/steps.ts';
import { story } from '../../../src/sandbox/story.ts';
import { skippedWebhookSteps, webhookSteps } from '../../../src/sandbox/webhook-steps.ts';
import { listeningNodeForTests } from '../../support/listening-node.ts';
import { onLoopback } from '../../support/loopback.ts';

let begun = 0;
/** Requests that have arrived at the silent service: only these end with its connections. */
let asked = 0;
const running = () => node.pipeline.running.size;

/** The service that the runs call: it answers nothing, so that each run stays in its first step. */
const silent = createServer(() => {
  asked += 1;
});
const baseUrl = `http://127.0.0.1:${await onLoopback(silent)}`;
const { runSandbox } = sandboxService(async (signal) => {
  begun += 1;
  return tell(story({ baseUrl }, skippedWebhookSteps('none'), Date.now), signal);
}, 64);
const node = await listeningNodeForTests({ handlers: { 'SandboxService.RunSandbox': runSandbox } });
afterAll(async () => {
  silent.closeAllConnections();
  silent.close();
});

/** Calls over one transport, and reads until the signal ends it. */
const transports: Readonly<Record<string, (signal: AbortSignal, onLine: () => void) => Promise<void>>> = {
  'REST, plain text': (signal, onLine) => readRest({}, signal, onLine),
  'REST, SSE': (signal, onLine) => readRest({ accept: 'text/event-stream' }, signal, onLine),
  Connect: (signal, onLine) => {
    const transport = createConnectTransport({ baseUrl: node.base, httpVersion: '1.1' });
    return read(createClient(SandboxService, transport).runSandbox({}, { signal }), onLine);
  },
  'gRPC-Web': (signal, onLine) => {
    const transport = createGrpcWebTransport({ baseUrl: node.base, httpVersion: '1.1' });
    return read(createClient(SandboxService, transport).runSandbox({}, { signal }), onLine);
  },
  gRPC: async (signal, onLine) => {
    await using client = createLedgerTrustClient({ grpcUrl: `http://${node.grpcAddress}`, transport: 'grpc' });
    await read(client.runSandbox({ signal }), onLine);
  },
};

async function readRest(headers: Record<string, string>, signal: AbortSignal, onLine: () => void): Promise<void> {
  const response = await fetch(`${node.base}/v1/sandbox/run`, { headers, signal });
  if (response.body === null) throw new Error('no body');
  await read(response.body, onLine);
}

async function read(pieces: AsyncIterable<unknown>, onPiece: () => void): Promise<void> {
  for await (const _ of pieces) onPiece();
}

test('a caller that hangs up while it waits frees its place at every transport', async () => {
  const { signal, abort } = ender();
  const runs = Array.from({ length: 4 }, () => readRest({}, signal, () => {}).catch(() => {}));
  await expect.poll(() => begun).toBe(4);
  for (const call of Object.values(transports)) {
    const caller = ender();
    const waits = Promise.withResolvers<void>();
    const ended = call(caller.signal, waits.resolve).catch(() => {});
    await waits.promise;
    expect(running()).toBe(5);
    caller.abort();
    await ended;
    await expect.poll(running).toBe(4);
  }
  const behind = Promise.withResolvers<void>();
  const last = readRest({}, signal, behind.resolve).catch(() => {});
  await behind.promise;
  expect(begun).toBe(4);
  await expect.poll(() => asked).toBe(4);
  // The connections of the four are lost, so the run that waits is next.
  silent.closeAllConnections();
  await expect.poll(() => asked).toBe(5);
  expect(begun).toBe(5);
  abort();
  silent.closeAllConnections();
  await Promise.all([...runs, last]);
  await expect.poll(running).toBe(0);
});

test('a story ends behind the running step when its caller is gone', async () => {
  const { signal, abort } = ender();
  const done: string[] = [];
  const step = (title: string, run: () => void): Step => ({
    title,
    run: async () => {
      done.push(title);
      run();
      return undefined;
    },
  });
  const steps = [step('first', () => {}), step('second', abort), step('third', () => {})];
  const lines = await Array.fromAsync(tell(steps, signal));
  expect(done).toEqual(['first', 'second']);
  expect(lines.at(-1)).not.toContain('passed');
});

test('a run does not wait for its webhook when its caller is gone', async () => {
  const { signal, abort } = ender();
  const client = { createWebhook: async () => ({ id: '1', secret: 'whsec_x' }), deleteWebhook: async () => {} };
  const steps = webhookSteps(() => true);
  onTestFinished(() => steps.close());
  for (const step of steps.subscribe({ name: 'bank', client } as never, () => 'ledger')) await step.run(signal);
  const [received] = steps.received();
  const waiting = received?.run(signal);
  abort();
  await expect(waiting).rejects.toBe(signal.reason);
  await expect(received?.run(signal)).rejects.toBe(signal.reason);
});

function ender(): { readonly signal: AbortSignal; readonly abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
