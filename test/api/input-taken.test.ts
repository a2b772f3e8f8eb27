import { afterAll, describe, expect, test } from 'vitest';
import { grpcClient } from '../support/grpc-client.ts';
import { inputTransports } from '../support/input-transports.ts';
import { JsonText } from '../support/json-text.ts';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { expectRefused, rest } from '../support/parties-rest.ts';

/** Parties without keys: what is taken has nothing to do with signatures. */
const { node, base, order, master } = await nodeWithMaster({ keyed: false });
const grpc = grpcClient(node.grpcAddress);
afterAll(() => grpc.close());
const transports = [...inputTransports(base, grpc).values()];

/** The same through every transport: `ok`, or how it was refused. */
async function everywhere(
  method: string,
  fields: object,
  more: Readonly<Record<string, string>> = {},
): Promise<unknown[]> {
  const sent = { method, fields: { ...fields }, changed: [], headers: { ...order.buyer.bearer, ...more } };
  const answers: (string | null)[] = [];
  for (const transport of transports) answers.push(await transport(sent));
  return answers.filter((answer) => answer !== null);
}

const appended = (payload: string, eventType = 'NOTED') =>
  everywhere('MasterService.AppendEvent', { uuid: master.uuid, event_type: eventType, payload: new JsonText(payload) });
const taken = ['ok', 'ok', 'ok', 'ok'];

describe('a payload, through all transports', () => {
  test.each(['a', 'Z.9:x-_', 'a'.repeat(128), 'ping', 'genesis'])('of type %.20s is accepted', async (type) => {
    expect(await appended('{}', type)).toEqual(taken);
  });

  test('keeps the values of its numbers and every text', async () => {
    const payload =
      '{"a":1.10,"b":1E2,"c":333333333.33333329,"d":-0,"e":"\\u00e9\\ud83d\\ude00","__proto__":{"x":1},"constructor":1,"n":9007199254740991}';
    expect(await appended(payload, 'KEPT')).toEqual(taken);
    const events = await rest(base, 'GET', `/v1/ledgers/${order.ledgerId}/events?event_type=KEPT`, order.buyer);
    expect(events.rows('events')).toHaveLength(4);
    for (const kept of ['"a":1.1,"b":100,', '"__proto__":{"x":1}', '"d":0,"e":"é😀","n":9007199254740991'])
      expect(events.raw.split(kept)).toHaveLength(5);
  });

  test('of 256 KiB is accepted, one byte more is not', async () => {
    const text = (bytes: number) => JSON.stringify({ text: 'x'.repeat(bytes - '{"text":""}'.length) });
    expect(await appended(text(262_144), 'FULL')).toEqual(taken);
    expect(new Set(await appended(text(262_145), 'FULL'))).toEqual(new Set(['payload_too_large of payload']));
  });

  test('of 63 levels, which make 64 in a body, is accepted, one level more is not', async () => {
    const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
    expect(await appended(deep(63))).toEqual(taken);
    expect(new Set(await appended(deep(64)))).toEqual(new Set(['too_deep']));
  });
});

test('metadata of 16 KiB is accepted, one byte more is not', async () => {
  const onboard = (bytes: number) =>
    everywhere('EntityService.OnboardEntity', {
      display_name: 'D',
      entity_type: 'DEVICE',
      unique_id: 'full',
      // What comes with it only as white space does not count.
      metadata: new JsonText(`{ "text":"${'x'.repeat(bytes - '{"text":""}'.length)}"}`),
    });
  expect(await onboard(16_384)).toEqual(taken);
  expect(new Set(await onboard(16_385))).toEqual(new Set(['payload_too_large of metadata']));
});

test('permissions of 4 KiB are accepted, one byte more is not', async () => {
  const grant = (bytes: number) =>
    everywhere('DelegationService.GrantMasterDelegation', {
      master_id: master.uuid,
      delegate_actor_id: order.supplier.actorId,
      role: 'OPS',
      permissions: new JsonText(`{ "text":"${'x'.repeat(bytes - '{"text":""}'.length)}"}`),
    });
  expect(await grant(4_096)).toEqual(taken);
  expect(new Set(await grant(4_097))).toEqual(new Set(['payload_too_large of permissions']));
});

test('a time has up to nine digits behind the point', async () => {
  const grant = (digits: number) =>
    everywhere('MasterService.GrantMasterAccess', {
      uuid: master.uuid,
      actor_id: order.supplier.actorId,
      access: 'read',
      expires_at: `2126-01-01T00:00:00.${'1'.repeat(digits)}Z`,
    });
  expect(await grant(9)).toEqual(taken);
  expect(new Set(await grant(10))).toEqual(new Set(['invalid_argument of expires_at']));
});

test('the length of a name counts characters, not bytes', async () => {
  for (const name of ['界'.repeat(256), '😀'.repeat(256)])
    expect(await everywhere('DeveloperService.CreateApiKey', { name })).toEqual(taken);
});

test('an invalid Idempotency-Key is ignored by calls without a caller and by reads', async () => {
  const key = { 'idempotency-key': 'x'.repeat(256) };
  expect(await everywhere('ActorService.CreateActor', {}, key)).toEqual(taken);
  expect(await everywhere('LedgerService.GetLedger', { ledger_id: order.ledgerId }, key)).toEqual(taken);
});

test('a call without fields accepts no body, null and {}, and refuses a field', async () => {
  const close = (body: unknown) =>
    rest(base, 'PATCH', '/v1/traceledger/master/0199aaaa-0000-7000-8000-000000000001/close', order.buyer, body);
  for (const body of [undefined, 'null', '{}', {}]) expectRefused(await close(body), 404, 'not_found');
  expectRefused(await close({ force: true }), 400, 'invalid_argument');
  expectRefused(await close('['), 400, 'invalid_json');
  expectRefused(await close('[]'), 400, 'invalid_argument');
});
