import { randomUUID } from 'node:crypto';
import type { Message } from '@bufbuild/protobuf';
import { afterAll, describe, expect, test } from 'vitest';
import { AuditService, type ListAccessEventsResponse } from '../../src/gen/svc/v1/audit_pb.ts';
import { LedgerService } from '../../src/gen/svc/v1/ledgers_pb.ts';
import { type AppendEventsResponse, MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { historyOf, storedHistory } from '../support/access-events.ts';
import { callGrpc, grpcClient, openGrpcStream } from '../support/grpc-client.ts';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { newDevice, newMaster, newOrder, newParty, type Party } from '../support/parties.ts';
import { runNode } from '../support/running-node.ts';
import { embeddedTest, untilKnownElsewhere } from '../support/several-nodes.ts';

const { node, order, master } = await nodeWithMaster({ keyed: false });
const client = grpcClient(node.grpcAddress);
afterAll(() => client.close());

interface Sent {
  readonly uuid: string;
  readonly eventType?: string;
  readonly payload?: string;
}

/** Sends events on one stream, waits for the outcome of each, ends the stream; the outcomes' cases and codes. */
function sendAll(headers: Readonly<Record<string, string>>, events: readonly Sent[], end = true): Promise<string[]> {
  const outcomes: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  const stream = openGrpcStream(client, MasterService.method.appendEvents, headers);
  stream.on('data', (message: Message) => {
    const { outcome } = message as AppendEventsResponse;
    outcomes.push(outcome.case === 'error' ? outcome.value.code : String(outcome.case));
    if (outcomes.length < events.length) return;
    if (end) stream.end();
    else stream.cancel();
  });
  stream.on('end', () => resolve(outcomes));
  stream.on('error', (error) => (end ? reject(error) : resolve(outcomes)));
  for (const [at, event] of events.entries())
    stream.write({ clientIndex: BigInt(at), eventType: 'A', payload: '{}', ...event });
  return promise;
}

const streamPath = '/svc.v1.MasterService/AppendEvents';
const streamsOf = async (party: Pick<Party, 'bearer'>) =>
  (await historyOf(node.base, party)).filter(({ path }) => path === streamPath);

describe('calls over gRPC', () => {
  test('are recorded by their REST method and path, refused ones with their HTTP status', async () => {
    const party = await newParty(node.base, { keyed: false });
    const call = (id: string, request: object) => {
      const headers = { ...party.bearer, 'x-request-id': id };
      return callGrpc(client, LedgerService.method.getLedger, request, headers);
    };
    expect((await call('refused', { ledgerId: order.ledgerId })).info?.reason).toBe('not_found');
    expect((await call('bad', { ledgerId: 'x' })).info?.reason).toBe('invalid_argument');
    const headers = { ...party.bearer, 'x-request-id': 'master' };
    await callGrpc(client, MasterService.method.listMasterEvents, { uuid: master.uuid }, headers);
    expect(await historyOf(node.base, party)).toMatchObject([
      {
        method: 'GET',
        path: `/v1/traceledger/master/${master.uuid}/events`,
        response_status: 404,
        ledger_id: null,
        request_id: 'master',
      },
      {
        method: 'GET',
        path: `/v1/ledgers/${order.ledgerId}`,
        response_status: 404,
        ledger_id: order.ledgerId,
        request_id: 'refused',
      },
    ]);
  });

  test('read the history, in which a missing ledger is absent', async () => {
    const party = await newParty(node.base, { keyed: false });
    await callGrpc(client, MasterService.method.getMaster, { uuid: randomUUID() }, party.bearer);
    await callGrpc(client, LedgerService.method.getLedger, { ledgerId: order.ledgerId }, party.bearer);
    await untilKnownElsewhere('access history');
    const { message } = await callGrpc(client, AuditService.method.listAccessEvents, {}, party.bearer);
    const { count, accessEvents } = message as ListAccessEventsResponse;
    expect(count).toBe(2);
    expect(accessEvents.map(({ ledgerId, responseStatus }) => [ledgerId, responseStatus])).toEqual([
      [order.ledgerId, 404],
      [undefined, 404],
    ]);
  });

  test('leave no record without a caller', async () => {
    const before = await historyOf(node.base, order.buyer);
    expect((await callGrpc(client, LedgerService.method.getLedger, { ledgerId: order.ledgerId })).info?.reason).toBe(
      'unauthenticated',
    );
    expect(await historyOf(node.base, order.buyer)).toEqual(before);
  });
});

describe('a stream', () => {
  test('is recorded at its end, once for each ledger of its events', async () => {
    const other = await newOrder(node.base, { keyed: false });
    const ofOther = await newMaster(other, other.supplier);
    const second = await newMaster(order);
    const { buyer } = order;
    const events = Array.from({ length: 60 }, (_, at) => ({ uuid: at % 2 === 0 ? master.uuid : second.uuid }));
    const outcomes = await sendAll(buyer.bearer, [...events, { uuid: ofOther.uuid }, { uuid: randomUUID() }]);
    expect(outcomes.filter((outcome) => outcome === 'appended')).toHaveLength(60);
    expect(outcomes.filter((outcome) => outcome === 'not_found')).toHaveLength(2);
    // Not under the ledger of others, which this caller was told nothing of.
    expect(await streamsOf(buyer)).toMatchObject([
      { method: 'POST', response_status: 200, ledger_id: order.ledgerId, api_key_id: buyer.keyId },
    ]);
  });

  test('is recorded under the ledgers that its caller may see, also if every event was refused', async () => {
    const { supplier } = order;
    const refused = [
      { uuid: master.uuid, eventType: 'GENESIS' },
      { uuid: master.uuid, payload: '{' },
    ];
    expect(await sendAll(supplier.bearer, refused)).toEqual(['reserved_event_type', 'invalid_json']);
    expect(await streamsOf(supplier)).toMatchObject([{ response_status: 200, ledger_id: order.ledgerId }]);
  });

  test('of a stranger is recorded under no ledger, whether its masters exist or not', async () => {
    for (const uuid of [master.uuid, randomUUID()]) {
      const stranger = await newParty(node.base, { keyed: false });
      const tries = [{ uuid }, { uuid, eventType: 'GENESIS' }];
      expect(await sendAll(stranger.bearer, tries)).toEqual(['not_found', 'reserved_event_type']);
      expect(await streamsOf(stranger)).toMatchObject([{ response_status: 200, ledger_id: null }]);
    }
  });

  test('without the id of a master leaves no record', async () => {
    const party = await newParty(node.base, { keyed: false });
    const stream = openGrpcStream(client, MasterService.method.appendEvents, party.bearer);
    const ended = new Promise((resolve) => stream.on('end', resolve));
    stream.on('data', () => {});
    stream.end();
    await ended;
    expect(await sendAll(party.bearer, [{ uuid: 'none' }])).toEqual(['invalid_argument']);
    expect(await streamsOf(party)).toEqual([]);
  });

  test('is recorded if its caller cancels it', async () => {
    const own = await newOrder(node.base, { keyed: false });
    const ofOwn = await newMaster(own);
    expect(await sendAll(own.buyer.bearer, [{ uuid: ofOwn.uuid }], false)).toEqual(['appended']);
    await expect.poll(() => streamsOf(own.buyer), { timeout: 5_000 }).toMatchObject([{ ledger_id: own.ledgerId }]);
  });

  embeddedTest('in the name of an entity that must sign leaves no record if nothing was signed', async () => {
    await using own = await runNode();
    const device = await newDevice(own.base, { keyed: true });
    const root = await newOrder(own.base, { keyed: false });
    const ofRoot = await newMaster(root);
    const grant = { ledger_id: root.ledgerId, delegate_actor_id: device.actorId, role: 'OPS' };
    await fetch(`${own.base}/v1/delegation/ledger`, {
      method: 'POST',
      headers: { ...root.buyer.bearer, 'content-type': 'application/json' },
      body: JSON.stringify(grant),
    });
    const forged = grpcClient(own.grpcAddress);
    const stream = openGrpcStream(forged, MasterService.method.appendEvents, device.headers);
    const codes: string[] = [];
    const ended = new Promise((resolve) => stream.on('end', resolve));
    stream.on('data', (message: Message) => {
      const { outcome } = message as AppendEventsResponse;
      codes.push(outcome.case === 'error' ? outcome.value.code : String(outcome.case));
      stream.end();
    });
    stream.write({ clientIndex: 0n, uuid: ofRoot.uuid, eventType: 'A', payload: '{}' });
    await ended;
    forged.close();
    expect(codes).toEqual(['signature_required']);
    await own.stop();
    expect(await storedHistory(own.dataDir, device.actorId)).toEqual([]);
  });
});
