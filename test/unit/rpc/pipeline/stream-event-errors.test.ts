import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { LedgerError, notFound } from '../../../../src/domain/errors.ts';
import { type AppendEventsRequest, MasterService } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import type { LedgerNaming } from '../../../../src/service/audit/ledger-naming.ts';
import type { EventAppender } from '../../../../src/service/masters/append-event.ts';
import { appendStream } from '../../../../src/service/masters/append-stream.ts';
import { StreamsMemory } from '../../../../src/service/masters/stream-memory.ts';
import { grpcClient, openGrpcStream } from '../../../support/grpc-client.ts';
import { actorId, bearer, type ListeningNode, startListeningNode } from '../../../support/listening-node.ts';

let close = async () => {};
afterEach(() => close());

/** A node whose append stream has ended. Its events went to a ledger each, or to one, and failed with these errors. */
async function failedWith(errors: readonly Error[], haveOneLedger = false): Promise<ListeningNode> {
  const appender = {
    ledgerOf: (uuid: string) => (haveOneLedger ? 'the ledger' : `ledger of ${uuid}`),
    prepare: (_call: unknown, { clientIndex }: AppendEventsRequest) => Promise.reject(errors[Number(clientIndex)]),
  } as unknown as EventAppender;
  const naming = { master: () => undefined } as unknown as LedgerNaming;
  const stream = appendStream(appender, naming, new StreamsMemory(new MemoryBudget(64 * 1024 * 1024)), Date.now);
  const node = await startListeningNode({ handlers: { 'MasterService.AppendEvents': stream as never } });
  const client = grpcClient(node.grpcAddress);
  close = async () => {
    client.close();
    await node[Symbol.asyncDispose]();
  };
  const sent = openGrpcStream(client, MasterService.method.appendEvents, { ...bearer, 'x-request-id': 'a-stream' });
  sent.on('data', () => {});
  for (const at of errors.keys()) sent.write({ clientIndex: BigInt(at), uuid: `master ${at}` });
  sent.end();
  await once(sent, 'end');
  await expect.poll(() => node.lines.some((line) => line.includes('"msg":"call"'))).toBe(true);
  return node;
}

const eventLines = ({ lines }: ListeningNode) =>
  lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'event failed');

test('an event that failed for a reason of the service leaves a line with its index and the reason', async () => {
  const cause = new Error('the disk is full');
  const node = await failedWith([
    new LedgerError('outcome_unknown', 'Perhaps.', {}, cause),
    new TypeError('a defect'),
    new LedgerError('unavailable', 'Not now.', {}, cause),
  ]);
  const common = { level: 'error', transport: 'grpc', request_id: 'a-stream', actor: actorId };
  const lines = eventLines(node).sort((a, b) => a.client_index.localeCompare(b.client_index));
  expect(lines).toMatchObject([
    { ...common, client_index: '0', code: 'outcome_unknown', status: 504, err: { message: 'the disk is full' } },
    { ...common, client_index: '1', code: 'internal', status: 500, err: { message: 'a defect' } },
    { ...common, client_index: '2', code: 'unavailable', status: 503, err: { message: 'the disk is full' } },
  ]);
});

test('an event whose outcome is unknown because its time ended leaves a line, a refused one leaves none', async () => {
  const node = await failedWith([
    notFound('master'),
    new LedgerError('outcome_unknown', 'Perhaps.'),
    new LedgerError('unavailable', 'Not now.'),
  ]);
  const [line, ...others] = eventLines(node);
  expect(others).toEqual([]);
  expect(line).toMatchObject({ level: 'info', client_index: '1', code: 'outcome_unknown', ms: expect.any(Number) });
  expect(line).not.toHaveProperty('err');
});

test('events that were not written are counted by their codes, and the stream once as ok', async () => {
  const unknown = new LedgerError('outcome_unknown', 'Perhaps.');
  const node = await failedWith([notFound('master'), unknown, unknown]);
  const counted = (await node.metrics.registry.metrics())
    .split('\n')
    .filter((line) => /^svc_(stream|requests)/.test(line));
  expect(counted.sort()).toEqual([
    'svc_requests_total{transport="grpc",method="/svc.v1.MasterService/AppendEvents",code="ok"} 1',
    'svc_stream_event_errors_total{code="not_found"} 1',
    'svc_stream_event_errors_total{code="outcome_unknown"} 2',
  ]);
});

test('events of one ledger that fail one after another leave the cause once', async () => {
  const cause = new Error('the disk is full');
  const node = await failedWith(
    [
      new LedgerError('unavailable', 'Not now.', {}, cause),
      new LedgerError('outcome_unknown', 'Perhaps.', {}, cause),
      new LedgerError('unavailable', 'Not now.', {}, cause),
    ],
    true,
  );
  const lines = eventLines(node);
  expect(lines.filter((line) => 'err' in line)).toHaveLength(1);
  expect(lines.filter(({ code }) => code === 'unavailable').length).toBeLessThanOrEqual(1);
});
