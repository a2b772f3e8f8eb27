import { afterEach, describe, expect, test } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { type AppendEventsRequest, MasterService } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import type { AccessHistory } from '../../../../src/service/audit/access-history.ts';
import type { AccessRecord } from '../../../../src/service/audit/access-record.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { grpcClient, openGrpcStream } from '../../../support/grpc-client.ts';
import { actorId, bearer, startListeningNode } from '../../../support/listening-node.ts';

const { streamLedgersMax } = limits;

let close = async () => {};
afterEach(() => close());

/** Sends one request for each ledger on a stream, whose handler names it, to a node with this access history. */
async function streamed(history: AccessHistory, ledgers: readonly string[], error: LedgerError | null = null) {
  const progress = { taken: 0, ended: false };
  async function* handler(requests: AsyncIterable<AppendEventsRequest>, call: Call) {
    for await (const { uuid } of requests) {
      progress.taken += 1;
      call.named(uuid);
      const full = call.recordNamed();
      if (full !== undefined) await full;
      yield {};
    }
    if (error !== null) throw error;
  }
  const handlers = { 'MasterService.AppendEvents': handler as never };
  const node = await startListeningNode({ handlers, history });
  const client = grpcClient(node.grpcAddress);
  close = async () => {
    client.close();
    await node[Symbol.asyncDispose]();
  };
  const stream = openGrpcStream(client, MasterService.method.appendEvents, bearer);
  stream.on('data', () => {});
  stream.on('error', () => {});
  stream.on('close', () => {
    progress.ended = true;
  });
  for (const uuid of ledgers) stream.write({ uuid });
  stream.end();
  return progress;
}

const ledgersOf = (count: number) => Array.from({ length: count }, (_, at) => `ledger ${at}`);

describe('the access records of a stream that names many ledgers', () => {
  test('are left as it goes, and those of the last ledgers at its end with its status', async () => {
    const records: AccessRecord[] = [];
    const history: AccessHistory = (entry, of) => {
      expect(of).toBe(actorId);
      records.push(entry as AccessRecord);
      return undefined;
    };
    const ledgers = ledgersOf(2 * streamLedgersMax + 3);
    const progress = await streamed(history, ledgers, new LedgerError('unavailable', 'The node stops.'));
    await expect.poll(() => progress.ended).toBe(true);
    expect(records.map(({ ledgerId }) => ledgerId)).toEqual(ledgers);
    const statuses = records.map(({ responseStatus }) => responseStatus);
    expect(statuses).toEqual(ledgers.map((_, at) => (at < 2 * streamLedgersMax ? 200 : 503)));
  });

  test('are two for a ledger that is named again after its record was left', async () => {
    const records: AccessRecord[] = [];
    const ledgers = ledgersOf(streamLedgersMax);
    const [first = ''] = ledgers;
    const history: AccessHistory = (entry) => void records.push(entry as AccessRecord);
    const progress = await streamed(history, [first, ...ledgers, first, first]);
    await expect.poll(() => progress.ended).toBe(true);
    expect(records.map(({ ledgerId }) => ledgerId)).toEqual([...ledgers, first]);
  });

  test.each([
    ['on its way', 2 * streamLedgersMax, streamLedgersMax],
    ['at its end', 3, 3],
  ])('wait one by one for room, and the stream with them, %s', async (_, ledgers, taken) => {
    const rooms: (() => void)[] = [];
    const history: AccessHistory = () => new Promise((resolve) => rooms.push(resolve));
    const progress = await streamed(history, ledgersOf(ledgers));
    await expect.poll(() => progress.taken).toBe(taken);
    for (let records = 1; records <= taken; records += 1) {
      await expect.poll(() => rooms.length).toBe(records);
      expect([progress.taken, progress.ended]).toEqual([taken, false]);
      rooms.at(-1)?.();
    }
    if (taken === ledgers) await expect.poll(() => progress.ended).toBe(true);
    else await expect.poll(() => progress.taken).toBe(ledgers);
  });
});
