import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exitCodes } from '../../src/cli/terminal/exit-codes.ts';
import { MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { callGrpc, grpcClient } from '../support/grpc-client.ts';
import { watchHost } from '../support/host-watch.ts';
import { startNodeProcess } from '../support/node-process.ts';
import { append, eventsOf, newMaster, newOrder } from '../support/parties.ts';
import { sendAll, streamed } from '../support/parties-stream.ts';
import { runNode, temporaryDir } from '../support/running-node.ts';

/** No file may become longer, as in test/api/full-disk.test.ts. */
const fullAt4Mebibytes = ['bash', '-c', 'ulimit -f 4096; exec "$@"', 'bash'];
const text = 'x'.repeat(60_000);

test('a node with a full disk refuses appends over gRPC and in streams too, and ends by itself with 74 after 30 s', async () => {
  const DATA_DIR = join(temporaryDir(), 'data');
  await using node = await startNodeProcess({ DATA_DIR, NODE_OPTIONS: '--max-old-space-size=256' }, fullAt4Mebibytes);
  const order = await newOrder(node.base, { keyed: false });
  const master = await newMaster(order);
  const client = grpcClient(node.grpcAddress);
  const host = watchHost();
  const written = new Set<unknown>();
  /** How appends over gRPC, and those of a stream, were refused. */
  const refused = { grpc: new Set<string>(), stream: new Set<string>() };
  let failedAt = Number.POSITIVE_INFINITY;
  const refuse = (lane: keyof typeof refused, code: string): void => {
    failedAt = Math.min(failedAt, performance.now());
    refused[lane].add(code);
  };
  const overGrpc = async (lane: number) => {
    for (let n = 0; n < 40; n += 1) {
      const request = { uuid: master.uuid, eventType: 'NOTED', payload: JSON.stringify({ lane, n, text }) };
      const { message, error, info } = await callGrpc(
        client,
        MasterService.method.appendEvent,
        request,
        order.buyer.bearer,
      );
      if (error === null) written.add((message as { eventId?: string } | null)?.eventId);
      else refuse('grpc', `${error.code} ${info?.reason}`);
    }
  };
  const inStream = async () => {
    const events = Array.from({ length: 80 }, (_, n) => streamed(master, order.buyer, n, { n, text }));
    for (const { code, answer } of await sendAll(client, order.buyer, events))
      if (answer.outcome.case === 'appended') written.add(answer.outcome.value.event?.eventId);
      else refuse('stream', String(code));
  };
  await Promise.all([overGrpc(0), overGrpc(1), overGrpc(2), inStream()]);
  client.close();
  expect(written.size).toBeGreaterThan(8);
  for (const code of refused.grpc) expect(['14 unavailable', '4 outcome_unknown']).toContain(code);
  for (const code of refused.stream) expect(['unavailable', 'outcome_unknown']).toContain(code);
  expect([...refused.grpc]).toContain('14 unavailable');
  expect([...refused.stream]).toContain('unavailable');
  // The batch that met the full disk has events of at least one of them.
  expect([...refused.grpc, ...refused.stream].join()).toContain('outcome_unknown');

  expect((await append(master, order.buyer, 'NOTED', {})).status).toBe(503);
  const { code, stderr } = await node.ended;
  expect(code).toBe(exitCodes.diskFailed);
  expect(stderr).toContain('ledger-trust: the disk failed, so the node stops: ');
  const tookMs = performance.now() - failedAt;
  expect(tookMs).toBeGreaterThan(25_000);
  expect(tookMs).toBeLessThan(host.bound(55_000));

  await using again = await runNode({ dataDir: DATA_DIR });
  const ids = new Set((await eventsOf(again.base, order.supplier, order.ledgerId)).map(({ id }) => id));
  for (const id of written) expect(ids.has(id)).toBe(true);
  await again.stop();
  rmSync(DATA_DIR, { recursive: true });
}, 120_000);
