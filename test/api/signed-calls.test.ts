import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { accessRequests } from '../support/access-calls.ts';
import { type AccessRow, accessRows } from '../support/access-matrix.ts';
import { apiMethods, hasRest, methodNamed, restCall, restTransport } from '../support/access-transports.ts';
import { newAccessWorld } from '../support/access-world.ts';
import { callGrpc, grpcClient } from '../support/grpc-client.ts';
import { nodeForTests } from '../support/node-for-tests.ts';
import { newKeyPair } from '../support/parties.ts';
import { done, expectRefused, type Fields, type RestAnswer, rest } from '../support/parties-rest.ts';
import { type SignedCallRow, signedCallRow, signedCallRows } from '../support/signing-page.ts';

/** Every call of the access matrix that may be made, with a signature of nothing: the service tells what it expects. */
const { base, grpcAddress } = await nodeForTests();
const client = grpcClient(grpcAddress);
afterAll(() => client.close());
const world = await newAccessWorld(base);

const ofNothing = Buffer.alloc(64, 7).toString('base64');
const ledgerTypeOf = { order: 'ORDER', root: 'FACILITY_ROOT', engagement: 'ENGAGEMENT' } as const;

/** What streams for long is not run for this. */
const isTried = ({ method }: AccessRow) => hasRest(method) && method !== 'SandboxService.RunSandbox';
const byParty = accessRows.filter((row) => isTried(row) && row.expected.party === 'ok');
const byEntity = accessRows.filter((row) => isTried(row) && row.expected.keyedEntityUnsigned === 'signature_required');

const requests = new Map<string, Fields>();

beforeAll(async () => {
  // Nobody has a key yet, so that these need no signatures.
  for (const row of byParty) {
    const cell = { world, row, caller: 'party', succeeds: true } as const;
    requests.set(row.name, (await accessRequests[row.method]?.(cell)) ?? {});
  }
  for (const actorId of [world.party.actorId, world.entity.actorId]) {
    const body = { public_key: newKeyPair().publicKey };
    await done(base, 'POST', `/v1/actors/${actorId}/keys`, world.party, body);
  }
});

function send(row: AccessRow, fields: Fields, headers: Readonly<Record<string, string>>): Promise<RestAnswer> {
  const { method, path, body } = restCall(row.method, fields);
  return rest(base, method, path, { headers, ...(body === undefined ? {} : { body }) });
}

/** Calls what nobody signs: of a stream its beginning is enough. */
const begun = restTransport(base);

interface Expected {
  readonly event_type: string;
  readonly ledger_id: string;
  readonly expected_canonical_json: string;
}

function expectedBy(answer: RestAnswer): Expected {
  expectRefused(answer, 401, 'invalid_signature');
  return (answer.body.error as { readonly details: Expected }).details;
}

const withoutValue = ['buyer_organization_id', 'supplier_organization_id', 'entity_id', 'expires_at'];

/** What the page of signing says of the call, against what the service expects. */
function compare(documented: SignedCallRow, fields: Fields, expected: Expected): void {
  expect(expected.event_type).toBe(documented.eventType ?? fields.event_type);
  const keys = Object.keys(JSON.parse(expected.expected_canonical_json) as object);
  const added = ['traceledger_master_uuid', 'business_ref', 'scope', 'buyer_actor_id', 'supplier_actor_id'];
  const listed = documented.keys ?? [...Object.keys(fields.payload as object), ...added];
  const optional = documented.keys === null ? added.slice(3) : withoutValue;
  expect(keys.filter((key) => !listed.includes(key))).toEqual([]);
  expect(listed.filter((key) => !keys.includes(key) && !optional.includes(key))).toEqual([]);
}

describe('a call with an API key', () => {
  test.each(byParty.map((row) => [row.name, row] as const))('%s is signed as docs/signing.md says', async (_, row) => {
    const documented = signedCallRow(row.method, row.target === null ? '' : ledgerTypeOf[row.target]);
    const fields = requests.get(row.name) ?? {};
    const { bearer } = world.party;
    const headers = { ...bearer, 'x-actor-sig': ofNothing };
    if (documented === undefined) return expect(await begun(row.method, fields, headers)).toBe('ok');
    const expected = expectedBy(await send(row, fields, headers));
    compare(documented, fields, expected);
    const ofTarget = row.target === null ? undefined : world.targets[row.target].ledgerId;
    const isClosing = expected.event_type === 'LEDGER_CLOSED' || expected.event_type === 'MASTER_CLOSED';
    if (ofTarget !== undefined && !isClosing) expect(expected.ledger_id).toBe(ofTarget);
    if (typeof fields.ledger_id === 'string') expect(expected.ledger_id).toBe(fields.ledger_id);
    const unsigned = await send(row, fields, bearer);
    expect(unsigned.code).toBe(documented.required ? 'signature_required' : null);
  });
});

describe('a call of an entity', () => {
  test.each(byEntity.map((row) => [row.name, row] as const))('%s is signed as docs/signing.md says', async (_, row) => {
    const fields = requests.get(row.name) ?? { actor_id: world.entity.actorId };
    const headers = { ...world.entity.headers, 'x-timestamp': new Date().toISOString(), 'x-actor-sig': ofNothing };
    const answer = await send(row, fields, headers);
    const documented = signedCallRow(row.method, row.target === null ? '' : ledgerTypeOf[row.target]);
    if (documented?.byEntity === true) {
      // The entity is no party of the order and of the organization's root.
      // Of facts of a ledger it is told nothing while its signature does not verify.
      if (row.method === 'MasterService.CreateMaster' && row.target === 'engagement')
        compare(documented, fields, expectedBy(answer));
      else if (row.target === 'engagement') expect(expectedBy(answer)).not.toHaveProperty('expected_canonical_json');
      else expectRefused(answer, 404, 'not_found');
      return;
    }
    const expected = expectedBy(answer);
    expect([expected.event_type, expected.ledger_id]).toEqual(['ENTITY_REQUEST', world.entity.actorId]);
    const signed = JSON.parse(expected.expected_canonical_json) as Fields;
    expect(Object.keys(signed)).toEqual(['body_hash', 'method', 'path', 'timestamp']);
    expect(signed).toMatchObject({ path: restCall(row.method, fields).path, timestamp: headers['x-timestamp'] });
  });
});

test('every method that can be signed was tried, but for the stream and the key of an entity', () => {
  const tried = new Set(byParty.map(({ method }) => method));
  const left = new Set(signedCallRows.map(({ method }) => method).filter((method) => !tried.has(method)));
  expect([...left]).toEqual(['MasterService.AppendEvents', 'EntityService.CloseRootLedger']);
  const untried = [...apiMethods.keys()].filter((method) => !tried.has(method));
  expect(untried.filter((method) => !/^EntityService/.test(method))).toEqual([
    'SandboxService.RunSandbox',
    'MasterService.AppendEvents',
  ]);
  expect(methodNamed('MasterService.AppendEvents').methodKind).toBe('bidi_streaming');
});

describe('the details compare what the caller says that it signed', () => {
  const row = accessRows.find(({ name }) => name === 'MasterService.CreateMaster@order');
  const ledgerId = world.targets.order.ledgerId;
  const fields = { business_ref: 'R & D', ledger_id: ledgerId, scope: 'ORDER' };
  const expected = JSON.stringify(fields);
  const sent = expected.replace('&', '\\u0026');
  const headers = {
    ...world.party.bearer,
    'x-actor-sig': ofNothing,
    'x-actor-digest': 'f'.repeat(64),
    'x-actor-canonical': Buffer.from(sent).toString('base64'),
  };
  const shown = {
    expected_canonical_json: expected,
    sent_canonical_json: sent,
    sent_digest: 'f'.repeat(64),
    first_difference: {
      byte: 19,
      expected: expect.stringMatching(/^& D","ledger_id/),
      sent: expect.stringMatching(/^\\u0026 D/),
    },
  };

  test('over REST', async () => {
    if (row === undefined) throw new Error('no such row');
    expect(expectedBy(await send(row, fields, headers))).toMatchObject(shown);
  });

  test('over gRPC', async () => {
    const { createMaster } = MasterService.method;
    const { info } = await callGrpc(client, createMaster, { businessRef: 'R & D', ledgerId, scope: 'ORDER' }, headers);
    expect(info?.reason).toBe('invalid_signature');
    expect(JSON.parse(info?.metadata.details ?? '{}')).toMatchObject(shown);
  });
});
