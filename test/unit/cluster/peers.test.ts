import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { NotOwner } from '../../../src/actors/routing/peers.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import { type AppendEventsRequest, MasterService } from '../../../src/gen/svc/v1/masters_pb.ts';
import { append, commandKey, stranger } from '../../support/commands.ts';
import { callGrpc, grpcClient, openGrpcStream } from '../../support/grpc-client.ts';
import { bearer, startListeningNode } from '../../support/listening-node.ts';
import {
  failure,
  newPeerServer,
  nodePort,
  openLedgerDirectory,
  ownerPort,
  peersAt,
  peersTo,
} from '../../support/peer-ports.ts';
import { startMs } from '../../support/world.ts';

describe('a command that is forwarded to another node', () => {
  test('is answered with the written event', async () => {
    const { port, log } = await ownerPort();
    const { ask, results } = peersTo(port);
    const command = append({ payload: '{"text":"\u2028 é \\"quoted\\""}', commandKeys: [commandKey('k')] });
    const outcome = await ask(command);
    expect(outcome).toEqual({ event: (await log()).at(-1), replayed: false });
    expect(outcome.event.payload).toBe(command.payload);
    expect((await ask(command)).replayed).toBe(true);
    expect(results).toEqual(['answered', 'answered']);
  });

  test('is refused with the owner’s code, message and details', async () => {
    const { port, directory } = await ownerPort();
    const { ask } = peersTo(port);
    const here = await failure(directory.submit(append({ actorId: stranger })));
    expect(await failure(ask(append({ actorId: stranger })))).toEqual(here);
    const refusal = new LedgerError('signing_key_revoked', 'Revoked.', { revoked_at: 'x', deep: [1] });
    const refusing = await nodePort({ carryOut: () => Promise.reject(refusal) });
    expect(await failure(peersTo(refusing.port).ask(append()))).toEqual(refusal);
  });

  test('is answered on a connection from an address whose last connection ends only now', async () => {
    const { directory } = await openLedgerDirectory();
    const service = newPeerServer({ carryOut: (command) => directory.carryOut(command) });
    const port = createServer((socket) => {
      const { remoteAddress, remotePort } = socket;
      const last = Object.assign(new Duplex({ read() {}, write: () => {} }), { remoteAddress, remotePort });
      service.takeConnection(last as unknown as Socket, () => {});
      service.takeConnection(socket, () => {});
      last.destroy();
    });
    await once(port.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => {
      service.close();
      port.close();
    });
    const { ask } = peersTo((port.address() as AddressInfo).port);
    expect((await ask(append())).event.seq).toBe(3);
  });

  test('may be refused with 300 KB of details: a gRPC client gets 4 KiB, and its connection stays open', async () => {
    const details = { expected_canonical_json: '"'.repeat(150_000), signing_key_id: 'key-1' };
    const refusal = new LedgerError('invalid_signature', 'x'.repeat(70_000), details);
    const owner = await nodePort({ carryOut: () => Promise.reject(refusal) });
    const { ask, results } = peersTo(owner.port);
    await using asked = await startListeningNode({
      handlers: {
        'MasterService.AppendEvent': () => ask(append()),
        'MasterService.AppendEvents': async function* (requests: AsyncIterable<AppendEventsRequest>) {
          for await (const { clientIndex } of requests) yield { clientIndex };
        },
      },
    });
    const client = grpcClient(asked.grpcAddress);
    const others = Array.from({ length: 40 }, () => openGrpcStream(client, MasterService.method.appendEvents, bearer));
    for (const stream of others) stream.on('error', () => {});
    const answers = () =>
      Promise.all(
        others.map((stream) => {
          stream.write({ clientIndex: 7n });
          return new Promise((resolve) => stream.once('data', resolve).once('close', resolve));
        }),
      );
    const all = others.map(() => expect.objectContaining({ clientIndex: 7n }));
    expect(await answers()).toEqual(all);
    const { info, error } = await callGrpc(client, MasterService.method.appendEvent, { payload: '{}' }, bearer);
    const [trailer] = error?.metadata.get('grpc-status-details-bin') ?? [];
    expect([info?.reason, info?.metadata.cut]).toEqual(['invalid_signature', 'message,expected_canonical_json']);
    expect(trailer?.length).toBeLessThanOrEqual(4 * 1024);
    expect(JSON.parse(info?.metadata.details ?? '')).toMatchObject({ signing_key_id: 'key-1' });
    expect(await answers()).toEqual(all);
    expect(results).toEqual(['answered']);
    client.close();
  });

  test('is answered with the owner of the shard by a node that does not own it', async () => {
    const owners = ['node-b', null];
    const far = await nodePort({ carryOut: () => Promise.reject(new NotOwner(owners.shift() ?? null)) });
    const { ask, results } = peersTo(far.port);
    expect(await failure(ask(append()))).toMatchObject({ name: 'NotOwner', owner: 'node-b' });
    expect(await failure(ask(append()))).toMatchObject({ name: 'NotOwner', owner: null });
    expect(results).toEqual(['not_owner', 'not_owner']);
  });

  test('does not reveal the text of an unexpected error, which the owner logs', async () => {
    const cause = new Error('password of the database');
    const failed: unknown[] = [];
    const parts = { carryOut: () => Promise.reject(cause), failed: (error: unknown) => void failed.push(error) };
    const far = await nodePort(parts);
    const error = await failure(peersTo(far.port).ask(append()));
    expect(error).toMatchObject({ code: 'internal' });
    expect(String((error as Error).message)).not.toMatch(/password/);
    expect(failed).toEqual([cause]);
  });

  test('is carried out in time if the clock of this node is an hour behind, and refused if it waited too long', async () => {
    const { port, carried } = await ownerPort();
    const behindMs = 3_600_000;
    const peers = peersAt({ port }, { storeAheadMs: () => behindMs });
    const within = (ms: number) => peers.ask('node-a', append({ deadline: startMs - behindMs + ms }));
    await expect(within(9_000)).resolves.toMatchObject({ replayed: false });
    await expect(within(-1)).rejects.toMatchObject({ code: 'unavailable' });
    expect(carried.map(({ deadline }) => deadline)).toEqual([startMs + 9_000, startMs - 1]);
  });

  test('keeps its order', async () => {
    const { port, log, carried } = await ownerPort();
    const { ask } = peersTo(port, { budgetMs: 15_000 });
    const wanted = Array.from({ length: 2_000 }, (_, n) => `{"n":${n}}`);
    const lane = (index: number) => ({ id: 'l', index, previous: index === 0 ? null : index - 1 });
    await Promise.all(wanted.map((payload, index) => ask(append({ payload, lane: lane(index) }))));
    expect(carried).toMatchObject(wanted.map((payload) => ({ payload })));
    expect((await log()).slice(3).map(({ payload }) => payload)).toEqual(wanted);
  });

  test('may be as large as the largest event', async () => {
    const { port } = await ownerPort();
    const payload = JSON.stringify({ text: '"'.repeat(290_000) });
    const { ask } = peersTo(port, { budgetMs: 15_000 });
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => ask(append({ payload }))));
    expect(outcomes.every(({ event }) => event.payload === payload)).toBe(true);
  });
});
