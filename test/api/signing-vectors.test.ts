import { createHash } from 'node:crypto';
import { canonicalize } from 'json-canonicalize';
import { afterAll, describe, expect, test } from 'vitest';
import { ActorService } from '../../src/gen/svc/v1/actors_pb.ts';
import { MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { carriedOver, ed25519Vectors } from '../support/ed25519-vectors.ts';
import { callGrpc, grpcClient } from '../support/grpc-client.ts';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { done, rest } from '../support/parties-rest.ts';

const { node, base, order, master } = await nodeWithMaster();
const client = grpcClient(node.grpcAddress);
afterAll(() => client.close());
const { actorId, bearer } = order.buyer;
const keysPath = `/v1/actors/${actorId}/keys`;

const [accepted, refused] = [true, false].map((is) => ed25519Vectors.filter(({ key_accepted }) => key_accepted === is));
const keyOf = (hex: string): string => Buffer.from(hex, 'hex').toString('base64');
/** The key of the four signatures that have one. */
const enrolled = done(base, 'POST', keysPath, {
  headers: bearer,
  body: { public_key: keyOf(accepted?.[0]?.public_key_hex ?? '') },
});

/** A message of the vectors is no digest of an event, so each signature is carried over to one. */
describe('an append with a signature of ed25519.json', () => {
  test.each(accepted ?? [])('is decided over REST and gRPC, valid: $valid: $what', async (vector) => {
    const kid = (await enrolled).text('kid');
    const headersOf = (payload: object) => {
      const text = canonicalize({ ...payload, ...master.injected });
      const digest = createHash('sha256').update(`NOTED\0${order.ledgerId}\0${text}`).digest();
      const signature = carriedOver(vector, digest).toString('base64');
      return { ...bearer, 'x-signing-key-id': kid, 'x-actor-sig': signature };
    };
    const overRest = { by: 'rest', what: vector.what };
    const answer = await rest(base, 'POST', `/v1/traceledger/master/${master.uuid}/events`, {
      headers: headersOf(overRest),
      body: { event_type: 'NOTED', payload: overRest },
    });
    expect([answer.status, answer.code]).toEqual(vector.valid ? [200, null] : [401, 'invalid_signature']);
    const overGrpc = { by: 'grpc', what: vector.what };
    const request = { uuid: master.uuid, eventType: 'NOTED', payload: JSON.stringify(overGrpc) };
    const { info, message } = await callGrpc(client, MasterService.method.appendEvent, request, headersOf(overGrpc));
    expect([message !== null, info?.reason]).toEqual(vector.valid ? [true, undefined] : [false, 'invalid_signature']);
  });

  test.each(refused ?? [])('cannot come, as its key is not enrolled: $what', async ({ public_key_hex }) => {
    const publicKey = keyOf(public_key_hex);
    const answer = await rest(base, 'POST', keysPath, { headers: bearer, body: { public_key: publicKey } });
    expect([answer.status, answer.code]).toEqual([400, 'invalid_public_key']);
    const { info } = await callGrpc(client, ActorService.method.enrollActorKey, { actorId, publicKey }, bearer);
    expect(info?.reason).toBe('invalid_public_key');
  });
});
