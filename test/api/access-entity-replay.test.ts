import { expect, test } from 'vitest';
import { nodeForTests } from '../support/node-for-tests.ts';
import { type Device, entityRequest, newDevice, newKeyPair, newParty, signatureOf } from '../support/parties.ts';
import { done, expectRefused, type Fields, rest } from '../support/parties-rest.ts';

const node = await nodeForTests();

test('an unsigned call in the name of an entity with a key learns nothing of what the entity may see', async () => {
  const { base } = node;
  const device = await newDevice(base, { keyed: true });
  const root = '/v1/entities/root-ledger';
  const ledger_id = (await done(base, 'POST', root, { headers: entityRequest(device, 'POST', root, '') })).text(
    'ledger_id',
  );
  const signed = (eventType: string, form: unknown, key = device.key.privateKey) => ({
    ...device.headers,
    'x-signing-key-id': device.kid,
    'x-actor-sig': signatureOf(key, eventType, ledger_id, form),
  });
  const body = { ledger_id, business_ref: 'R', scope: 'PROCESS' };
  const creation = { path: '/v1/traceledger/master', type: 'TRACELEDGER_MASTER_CREATED', form: body as Fields, body };
  const keyed = (headers: Record<string, string>, key: string) => ({ ...headers, 'idempotency-key': key });
  const made = await done(base, 'POST', creation.path, {
    headers: keyed(signed(creation.type, body), 'create-1'),
    body,
  });
  const uuid = made.text('uuid');
  const payload = { t: 1, traceledger_master_uuid: uuid };
  const appending = { path: `/v1/traceledger/master/${uuid}/events`, type: 'READ', form: payload as Fields };
  const sent = { event_type: 'READ', payload };
  const first = await done(base, 'POST', appending.path, {
    headers: keyed(signed('READ', payload), 'append-1'),
    body: sent,
  });

  const forged = newKeyPair().privateKey;
  for (const [call, content, key] of [
    [creation, body, 'create-1'],
    [appending, sent, 'append-1'],
  ] as const) {
    const again = (headers: Record<string, string>) =>
      rest(base, 'POST', call.path, { headers: keyed(headers, key), body: content });
    expectRefused(await again(device.headers), 401, 'signature_required');
    expectRefused(await again({ ...device.headers, 'x-signing-key-id': device.kid }), 401, 'signature_required');
    expectRefused(await again(signed(call.type, call.form, forged)), 401, 'invalid_signature');
    const own = await again(signed(call.type, call.form));
    expect([own.status, own.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
  }
  expect(first.text('traceledger_master_uuid')).toBe(uuid);

  // A master that is there answers a bare header as one that is not.
  const bare = async (path: string, method = 'POST', content: unknown = sent) =>
    (await rest(base, method, path, { headers: device.headers, body: content })).code;
  const unknown = '0199aaaa-0000-7000-8000-00000000dead';
  for (const id of [uuid, unknown]) {
    expect(await bare(`/v1/traceledger/master/${id}/events`)).toBe('signature_required');
    expect(await bare(`/v1/traceledger/master/${id}/close`, 'PATCH', {})).toBe('signature_required');
  }
  for (const id of [ledger_id, unknown])
    expect(await bare('/v1/traceledger/master', 'POST', { ...body, ledger_id: id })).toBe('signature_required');
});

test('a grant or revocation of an entity that must sign is replayed only to a request that it signed', async () => {
  const { base } = node;
  const owner = await newParty(base);
  const device = await newDevice(base, { owner, keyed: true });
  const forger: Device = { ...device, key: newKeyPair() };
  const root = '/v1/entities/root-ledger';
  const ledger_id = (await done(base, 'POST', root, { headers: entityRequest(device, 'POST', root, '') })).text(
    'ledger_id',
  );
  const body = { ledger_id, business_ref: 'R', scope: 'PROCESS' };
  const signature = signatureOf(device.key.privateKey, 'TRACELEDGER_MASTER_CREATED', ledger_id, body);
  const headers = { ...device.headers, 'x-signing-key-id': device.kid, 'x-actor-sig': signature };
  const uuid = (await done(base, 'POST', '/v1/traceledger/master', { headers, body })).text('uuid');

  const access = `/v1/traceledger/master/${uuid}/access`;
  const send = (method: string, path: string, content: object | undefined, headers: Record<string, string>) =>
    rest(base, method, path, {
      headers: { ...headers, 'idempotency-key': `${method} once` },
      ...(content === undefined ? {} : { body: JSON.stringify(content) }),
    });
  const signed = (by: Device, method: string, path: string, content: object | undefined) =>
    entityRequest(by, method, path, content === undefined ? '' : JSON.stringify(content));
  const calls: [method: string, path: string, content: object | undefined][] = [
    ['POST', access, { actor_id: owner.actorId, access: 'read' }],
  ];
  for (const [method, path, content] of calls) {
    const first = await send(method, path, content, signed(device, method, path, content));
    expect(first.status).toBeLessThan(300);
    if (method === 'POST') calls.push(['DELETE', `${access}/${first.text('link_id')}`, undefined]);
    const replay = (with_: Record<string, string>) => send(method, path, content, with_);
    expectRefused(await replay(device.headers), 401, 'signature_required');
    expectRefused(await replay({ ...device.headers, 'x-signing-key-id': device.kid }), 401, 'signature_required');
    expectRefused(await replay(signed(forger, method, path, content)), 401, 'invalid_signature');
    const own = await replay(signed(device, method, path, content));
    expect([own.status, own.raw, own.headers.get('idempotent-replayed')]).toEqual([first.status, first.raw, 'true']);
  }

  // The calls of delegation take an API key alone.
  const grant = { master_id: uuid, delegate_actor_id: owner.actorId, role: 'OPS' };
  for (const method of ['POST', 'PATCH'])
    for (const sent of [device.headers, headers, signed(device, method, '/v1/delegation/master', grant)])
      expectRefused(await send(method, '/v1/delegation/master', grant, sent), 401, 'unauthenticated');
});
