import { expect, test } from 'vitest';
import { nodeForTests } from '../support/node-for-tests.ts';
import { entityRequest, newDevice, newKeyPair, signatureOf } from '../support/parties.ts';
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
