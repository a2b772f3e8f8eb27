import { createHash } from 'node:crypto';
import { canonicalize } from 'json-canonicalize';
import { expect, test } from 'vitest';
import { nodeForTests } from '../support/node-for-tests.ts';
import { entityRequest, newDevice, newKeyPair, newParty, signatureOf } from '../support/parties.ts';
import { done, expectRefused, type Fields, type RestAnswer, rest } from '../support/parties-rest.ts';

const { base } = await nodeForTests();
const owner = await newParty(base);
const keyed = await newDevice(base, { owner, keyed: true });

const ledgerId = (await asked('POST', '/v1/entities/root-ledger')).text('ledger_id');

/** A call signed as a whole. */
function asked(method: string, path: string, body?: unknown, more: Record<string, string> = {}): Promise<RestAnswer> {
  const raw = body === undefined ? '' : JSON.stringify(body);
  const headers = { ...entityRequest(keyed, method, path, raw), ...more };
  return rest(base, method, path, { headers, ...(body === undefined ? {} : { body: raw }) });
}

/** The headers of an event signed by the device. */
const signed = (eventType: string, form: unknown, device = keyed): Record<string, string> => ({
  ...device.headers,
  'x-signing-key-id': device.kid,
  'x-actor-sig': signatureOf(device.key.privateKey, eventType, ledgerId, form),
});

async function master(): Promise<{ uuid: string; injected: Fields }> {
  const body = { ledger_id: ledgerId, business_ref: `R-${Math.random()}`, scope: 'PROCESS' };
  const made = await done(base, 'POST', '/v1/traceledger/master', {
    headers: signed('TRACELEDGER_MASTER_CREATED', body),
    body,
  });
  const uuid = made.text('uuid');
  return { uuid, injected: { traceledger_master_uuid: uuid, business_ref: body.business_ref, scope: body.scope } };
}

async function count(): Promise<number> {
  return (await asked('GET', `/v1/ledgers/${ledgerId}/events`)).body.count as number;
}

test('an entity without a key may call unsigned in development mode, and its events carry the seal', async () => {
  const bare = await newDevice(base);
  const as = (method: string, path: string, body?: unknown) =>
    rest(base, method, path, { headers: bare.headers, body });
  const root = (await as('POST', '/v1/entities/root-ledger')).text('ledger_id');
  const made = await as('POST', '/v1/traceledger/master', { ledger_id: root, business_ref: 'R', scope: 'PROCESS' });
  const path = `/v1/traceledger/master/${made.text('uuid')}/events`;
  expect((await as('POST', path, { event_type: 'INSPECTION_READING', payload: { t: 1 } })).status).toBe(200);
  const events = await as('GET', path);
  expect(events.body.integrity).toEqual({ verified: true, issues: [] });
  expect(events.rows('events')[1]).toMatchObject({ actor_id: bare.actorId, actor_type: 'device', actor_sig: null });
  for (const reading of ['/v1/traceledger/master?ledger_id=', '/v1/ledgers/']) {
    const where = reading.endsWith('=') ? `${reading}${root}` : `${reading}${root}/events`;
    expect((await as('GET', where)).status).toBe(200);
  }
  expect((await as('PATCH', `/v1/traceledger/master/${made.text('uuid')}/close`)).status).toBe(200);
});

test('a Bearer key beside the headers of an entity is the identity of the call', async () => {
  const bare = await newDevice(base);
  const both = { ...bare.headers, ...owner.bearer };
  expectRefused(await rest(base, 'POST', '/v1/entities/root-ledger', { headers: both }), 403, 'permission_denied');
});

test('ENTITY_REQUEST covers the method, the path with its query, the body and a recent time', async () => {
  const path = '/v1/entities/arl-gate';
  const body = JSON.stringify({ require_arl: false });
  const patch = (headers: Record<string, string>, to = path, sent = body) =>
    rest(base, 'PATCH', to, { headers, body: sent });
  const good = entityRequest(keyed, 'PATCH', path, body);
  expectRefused(await patch(good, `${path}?x=1`), 401, 'invalid_signature');
  expectRefused(await patch(good, path, `${body} `), 401, 'invalid_signature');
  expectRefused(await patch(entityRequest(keyed, 'POST', path, body)), 401, 'invalid_signature');
  const { 'x-timestamp': stamp, ...timeless } = good;
  expectRefused(await patch(timeless), 401, 'signature_required');
  for (const wrong of ['yesterday', String(Date.now()), '2026-13-01T00:00:00Z', `${stamp} `.trim().replace('Z', '')]) {
    expectRefused(await patch({ ...good, 'x-timestamp': wrong }), 401, 'invalid_signature');
  }
  const at = (offsetS: number) => entityRequest(keyed, 'PATCH', path, body, new Date(Date.now() + offsetS * 1000));
  expectRefused(await patch(at(-310)), 401, 'invalid_signature');
  expectRefused(await patch(at(310)), 401, 'invalid_signature');
  expect((await patch(at(-290))).status).toBe(200);
  expect((await patch(at(290))).status).toBe(200);
  expect((await patch(good)).status).toBe(200);
});

test('an ENTITY_REQUEST changes state once, also if sent many times at once; its own retry is a replay', async () => {
  const path = '/v1/engagements';
  const body = JSON.stringify({ counterparty_actor_id: owner.actorId, purpose: 'SERVICE' });
  const headers = entityRequest(keyed, 'POST', path, body);
  const many = await Promise.all(Array.from({ length: 20 }, () => rest(base, 'POST', path, { headers, body })));
  expect(many.filter((answer) => answer.status === 200)).toHaveLength(1);
  for (const answer of many.filter(({ status }) => status !== 200)) expectRefused(answer, 401, 'invalid_signature');

  const withKey = { ...entityRequest(keyed, 'POST', path, body, new Date(Date.now() + 5)), 'idempotency-key': 'eng-1' };
  const first = await rest(base, 'POST', path, { headers: withKey, body });
  const again = await rest(base, 'POST', path, { headers: withKey, body });
  expect([first.status, again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 200, 'true']);
  expect(again.body).toEqual(first.body);
  expectRefused(
    await rest(base, 'POST', path, { headers: { ...withKey, 'idempotency-key': 'eng-2' }, body }),
    401,
    'invalid_signature',
  );
  const read = `/v1/traceledger/master?ledger_id=${ledgerId}`;
  const reading = entityRequest(keyed, 'GET', read, '');
  for (const _ of [1, 2, 3]) expect((await rest(base, 'GET', read, { headers: reading })).status).toBe(200);
});

test('a signed event counts once for ever, whatever idempotency key it is sent again with', async () => {
  const { uuid, injected } = await master();
  const path = `/v1/traceledger/master/${uuid}/events`;
  const payload = { counter: 1 };
  const headers = signed('INSPECTION_READING', { ...payload, ...injected });
  const body = { event_type: 'INSPECTION_READING', payload };
  const first = await rest(base, 'POST', path, { headers, body });
  expect(first.status).toBe(200);
  const events = await asked('GET', path);
  const shown = events.rows('events').at(-1) ?? {};
  const before = await count();
  const replays = await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      rest(base, 'POST', path, {
        headers: {
          ...keyed.headers,
          'x-signing-key-id': String(shown.signing_key_id),
          'x-actor-sig': String(shown.actor_sig),
          ...(at % 2 === 0 ? { 'idempotency-key': `other-${at}` } : {}),
        },
        body: at % 4 === 0 ? { ...body, payload: shown.payload } : body,
      }),
    ),
  );
  for (const replay of replays) {
    expect([replay.status, replay.headers.get('idempotent-replayed'), replay.body]).toEqual([200, 'true', first.body]);
  }
  expect(await count()).toBe(before);

  const created = { ledger_id: ledgerId, business_ref: 'once', scope: 'PROCESS' };
  const creation = { headers: signed('TRACELEDGER_MASTER_CREATED', created), body: created };
  const one = await rest(base, 'POST', '/v1/traceledger/master', creation);
  const two = await rest(base, 'POST', '/v1/traceledger/master', creation);
  expect([two.status, two.body]).toEqual([200, one.body]);
  const form = {
    traceledger_master_uuid: uuid,
    ledger_id: ledgerId,
    ledger_type: 'ENTITY_ROOT',
    requested_by_actor_id: keyed.actorId,
    status: 'CLOSED',
    entity_id: keyed.entityId,
  };
  const close = () =>
    rest(base, 'PATCH', `/v1/traceledger/master/${uuid}/close`, { headers: signed('MASTER_CLOSED', form) });
  const closed = await close();
  expect(closed.status).toBe(200);
  const again = await close();
  expect([again.status, again.body, again.headers.get('idempotent-replayed')]).toEqual([200, closed.body, 'true']);
});

test('only the owner of an entity enrols, prefers and revokes its keys', async () => {
  const device = await newDevice(base, { owner });
  const path = `/v1/actors/${device.actorId}/keys`;
  const stranger = await newParty(base);
  const { publicKey } = newKeyPair();
  expectRefused(await rest(base, 'POST', path, stranger, { public_key: publicKey }), 403, 'permission_denied');
  const first = await done(base, 'POST', path, owner, { public_key: publicKey, algorithm: 'Ed25519' });
  expect(first.body).toMatchObject({
    kid: `svc:actor:${device.actorId}#key-1`,
    status: 'ACTIVE',
    algorithm: 'Ed25519',
  });
  expectRefused(
    await rest(base, 'POST', '/v1/entities/root-ledger', { headers: device.headers }),
    401,
    'signature_required',
  );
  await done(base, 'POST', path, owner, { public_key: newKeyPair().publicKey });
  expectRefused(await rest(base, 'PATCH', `${path}/key-2/prefer`, stranger), 403, 'permission_denied');
  expect((await done(base, 'PATCH', `${path}/key-2/prefer`, owner)).status).toBe(204);
  for (const key of ['key-1', 'key-2']) {
    await done(base, 'PATCH', `${path}/${key}/revoke`, owner, { reason: 'sold' });
  }
  expectRefused(
    await rest(base, 'POST', '/v1/entities/root-ledger', { headers: device.headers }),
    401,
    'signature_required',
  );
});

test('a caller that only names an entity learns nothing of a master from a signature that does not verify', async () => {
  const { uuid, injected } = await master();
  const path = `/v1/traceledger/master/${uuid}`;
  const forged = { ...keyed.headers, 'x-actor-sig': Buffer.alloc(64, 7).toString('base64') };
  const right = canonicalize({ note: 1, ...injected });
  const stated = (canonical: string): Record<string, string> => ({
    ...forged,
    'x-actor-digest': createHash('sha256').update(`NOTED\0${ledgerId}\0${canonical}`).digest('hex'),
    'x-actor-canonical': Buffer.from(canonical).toString('base64'),
  });
  const append = (headers: Record<string, string>, payload: Fields) =>
    rest(base, 'POST', `${path}/events`, { headers, body: { event_type: 'NOTED', payload } });
  const detailsOf = (answer: RestAnswer): Fields => {
    expectRefused(answer, 401, 'invalid_signature');
    return (answer.body.error as { readonly details: Fields }).details;
  };

  for (const payload of [
    { note: 1 },
    { note: 1, business_ref: injected.business_ref },
    { note: 1, business_ref: 'guess' },
  ]) {
    const answer = await append(forged, payload);
    expect(Object.keys(detailsOf(answer)).sort()).toEqual(['event_type', 'header', 'hint', 'signing_key_id']);
    for (const fact of [ledgerId, String(injected.business_ref)]) expect(answer.raw).not.toContain(fact);
  }
  const guesses = [right, right.replace('R-0', 'R-x'), right.slice(0, 20)];
  const compared = await Promise.all(guesses.map(async (guess) => detailsOf(await append(stated(guess), { note: 1 }))));
  for (const [at, details] of compared.entries()) {
    expect(details).toMatchObject({ sent_canonical_json: guesses[at], hint: compared[0]?.hint });
    for (const name of ['expected_canonical_json', 'expected_digest', 'first_difference'])
      expect(details).not.toHaveProperty(name);
  }
  const closing = await rest(base, 'PATCH', `${path}/close`, { headers: forged });
  expect(detailsOf(closing)).not.toHaveProperty('ledger_id');

  // A signature of the device over an event of another master is no proof for this one.
  const other = { ...(await master()).injected, note: 2 };
  const replayed = await append(signed('NOTED', other), other);
  expectRefused(replayed, 400, 'reserved_field');
  expect(replayed.body.error).toMatchObject({ details: { field: 'payload.traceledger_master_uuid', expected: uuid } });
});

test('details show all of a signing input that was sent, and the facts of a master once a signature verifies', async () => {
  const { injected, uuid } = await master();
  const body = { ledger_id: ledgerId, business_ref: 'R', scope: 'PROCESS' };
  const forged = { ...keyed.headers, 'x-actor-sig': Buffer.alloc(64, 7).toString('base64') };
  const made = await rest(base, 'POST', '/v1/traceledger/master', { headers: forged, body });
  expect(made.body.error).toMatchObject({ details: { expected_canonical_json: canonicalize(body) } });

  const payload = { business_ref: 'other' };
  const sent = { event_type: 'NOTED', payload };
  const path = `/v1/traceledger/master/${uuid}/events`;
  const answer = await rest(base, 'POST', path, {
    headers: signed('NOTED', { ...injected, ...payload }),
    body: sent,
  });
  expectRefused(answer, 400, 'reserved_field');
  expect(answer.body.error).toMatchObject({ details: { expected: injected.business_ref } });
});
