import { afterAll, beforeEach, expect, test } from 'vitest';
import { createLog } from '../../src/runtime/telemetry/log.ts';
import { grpcClient } from '../support/grpc-client.ts';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { type Fields, rest } from '../support/parties-rest.ts';
import { sendAll, streamed } from '../support/parties-stream.ts';
import { runFaultyNode } from '../support/running-node-faulty.ts';

const lines: Fields[] = [];

const node = await runFaultyNode({ log: createLog('info', { write: (line) => void lines.push(JSON.parse(line)) }) });
const order = await newOrder(node.base);
const master = await newMaster(order);
afterAll(() => node[Symbol.asyncDispose]());
beforeEach(() => {
  lines.length = 0;
});

/** The line of the call, and that of the batch that the store did not confirm. */
function linesOf(requestId: string): Fields[] {
  return lines.filter(({ request_id, request_ids }) =>
    request_ids === undefined ? request_id === requestId : (request_ids as string[]).includes(requestId),
  );
}

const unconfirmed = (requestId: string) => ({
  msg: 'the store did not confirm a batch',
  ledger_id: master.ledgerId,
  request_ids: [requestId],
  resolution: 'written',
});

test('a batch that the store does not confirm is logged with the request id of its call', async () => {
  node.fail('append', 'applied');
  const headers = { 'x-request-id': 'an-append' };
  expect((await append(master, order.buyer, 'NOTED', { n: 1 }, { headers })).status).toBe(200);
  expect(linesOf('an-append')).toMatchObject([unconfirmed('an-append'), { msg: 'call', request_id: 'an-append' }]);
});

test('the events of a stream have the id of the stream', async () => {
  node.fail('append', 'applied');
  const bearer = { ...order.buyer.bearer, 'x-request-id': 'a-stream' };
  const client = grpcClient(node.grpcAddress);
  const events = [0, 1, 2].map((n) => streamed(master, order.buyer, n, { n }));
  const outcomes = await sendAll(client, { bearer }, events);
  client.close();
  expect(outcomes.map(({ code }) => code)).toEqual([null, null, null]);
  expect(linesOf('a-stream')[0]).toMatchObject(unconfirmed('a-stream'));
});

test('so has the opening of a ledger', async () => {
  node.fail('append', 'applied');
  const { actorId } = order.supplier;
  const opened = await rest(node.base, 'POST', '/v1/ledgers', {
    headers: { ...order.buyer.bearer, 'x-request-id': 'an-opening' },
    body: { supplier_actor_id: actorId },
  });
  expect(opened.status, opened.raw).toBe(200);
  expect(linesOf('an-opening')[0]).toMatchObject({ ...unconfirmed('an-opening'), ledger_id: expect.any(String) });
});
