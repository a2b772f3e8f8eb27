import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { documentedJson, withoutChance } from '../support/documented-json.ts';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { runNode, suiteDir } from '../support/running-node.ts';
import { type ReceivedWebhook, receiveWebhooks } from '../support/webhook-receiver.ts';
import { jsonLinesOf, testWith } from './toolchain.ts';
import { requests, type SignedRequest, snippet } from './webhook-snippets.ts';

const folder = suiteDir();

/** A delivery of a node to a receiver of this test. */
async function delivery(): Promise<{ readonly received: ReceivedWebhook; readonly secret: string }> {
  await using node = await runNode();
  await using receiver = await receiveWebhooks();
  const order = await newOrder(node.base);
  const master = await newMaster(order, order.supplier, 'PO-2026-0001');
  const body = { url: receiver.url, event_types: ['SHIPMENT_DISPATCHED'] };
  const made = await done(node.base, 'POST', '/v1/webhooks', order.buyer, body);
  await append(master, order.supplier, 'SHIPMENT_DISPATCHED', { carrier: 'BlueDart' });
  await receiver.until(1);
  const [received] = receiver.received;
  if (received === undefined) throw new Error('nothing was received');
  return { received, secret: made.text('secret') };
}

const { received, secret } = await delivery();

/** The same delivery as the snippets take it. */
const live: SignedRequest = {
  name: 'the delivery of a node',
  secret,
  headers: Object.fromEntries(Object.entries(received.headers).map(([name, value]) => [name, String(value)])),
  body: received.raw.toString('base64'),
  nowS: Number(received.headers['webhook-timestamp']),
  isGenuine: true,
};
const cases = [live, ...requests];
const expected = cases.map(({ name, isGenuine }) => [name, isGenuine]);

test('the body that webhooks.md shows is what a node delivers', () => {
  const shown = documentedJson('docs/webhooks.md');
  expect(withoutChance(shown)).toEqual(withoutChance(new Map([['body', JSON.parse(received.raw.toString())]])));
});

test('the headers that webhooks.md lists are those of a delivery', () => {
  for (const name of ['x-svc-signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature'])
    expect(received.headers[name]).toBeTypeOf('string');
  expect(received.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'user-agent': 'ledger-trust-webhooks/1',
  });
});

test('the TypeScript of webhooks.md takes what the service signed, and nothing else', async () => {
  writeFileSync(join(folder, 'verify.ts'), snippet('ts'));
  const { isFromService } = await import(join(folder, 'verify.ts'));
  const decided = cases.map(({ name, secret, headers, body, nowS }) => [
    name,
    isFromService(secret, headers, Buffer.from(body, 'base64'), nowS),
  ]);
  expect(decided).toEqual(expected);
  expect(() => isFromService('whsec_', live.headers, Buffer.from(live.body, 'base64'), live.nowS)).toThrow('32 bytes');
});

testWith('python3', 'the Python of webhooks.md takes what the service signed, and nothing else', () => {
  const harness = `
import sys
for case in json.load(sys.stdin):
    body = base64.b64decode(case["body"])
    print(json.dumps([case["name"], is_from_service(case["secret"], case["headers"], body, case["nowS"])]))
`;
  writeFileSync(join(folder, 'verify.py'), snippet('py') + harness);
  expect(jsonLinesOf('python3', [join(folder, 'verify.py')], cases)).toEqual(expected);
});

test('the openssl command of webhooks.md makes X-SVC-Signature', () => {
  writeFileSync(join(folder, 'body'), received.raw);
  const command = `printf 'svc-webhook-v1:' | cat - body | openssl dgst -sha256 -hmac "$SECRET"`;
  const { stdout } = spawnSync('sh', ['-c', command], {
    cwd: folder,
    env: { ...process.env, SECRET: secret },
    encoding: 'utf8',
  });
  expect(`sha256=${stdout.trim().split('= ').at(-1)}`).toBe(received.headers['x-svc-signature']);
});
