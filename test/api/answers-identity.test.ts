import { describe, expect, test } from 'vitest';
import { nodeForTests } from '../support/node-for-tests.ts';
import { newKeyPair, newParty } from '../support/parties.ts';
import { done, expectRefused, rest, shape } from '../support/parties-rest.ts';
import { embeddedTest } from '../support/several-nodes.ts';

const { base } = await nodeForTests();
const party = await newParty(base);

describe('health, terms and trust anchor', () => {
  embeddedTest.each(['/health', '/v1/health'])('%s names the store', async (path) => {
    const { status, body } = await rest(base, 'GET', path);
    expect({ status, body }).toEqual({ status: 200, body: { status: 'ok', db: [{ name: 'lmdb', status: 'ok' }] } });
  });

  test('the terms start at version 1.0', async () => {
    const { body } = await done(base, 'GET', '/v1/legal/terms');
    expect(body).toEqual({ version: '1.0', text: expect.stringContaining('Terms') });
  });

  test.each(['/.well-known/svc-authority', '/v1/.well-known/svc-authority'])(
    '%s is of phase 1 in development mode: it names no key as the authority, and lists the one that seals',
    async (path) => {
      const { body } = await done(base, 'GET', path);
      expect(body).toMatchObject({
        id: 'svc:authority',
        algorithm: 'Ed25519',
        kid_namespace: 'svc:authority#key-<seq>',
        phase: '1',
        keys: [{ kid: 'svc:authority#key-1', algorithm: 'Ed25519', public_key: expect.any(String), valid_to: null }],
      });
      expect(body).not.toHaveProperty('public_key');
      expect(body).not.toHaveProperty('fingerprint');
    },
  );
});

describe('developer access', () => {
  test('a registration returns actors of two worlds, and a signing key if a public key was sent', async () => {
    const sent = { name: 'A', email: 'a@example.com', region: 'in' };
    const bare = await done(base, 'POST', '/v1/developer/register', { body: sent });
    const worldOf = (environment: string) => ({
      actor_id: shape.uuid,
      svc_id: expect.stringMatching(/^svc:actor:[0-9a-f-]{36}$/),
      environment,
      key_id: shape.uuid,
    });
    expect(bare.body).toEqual({
      sandbox: { ...worldOf('sandbox'), api_key: expect.stringMatching(/^svc_sk_test_[0-9A-Za-z]+$/) },
      production: {
        ...worldOf('production'),
        region: 'in',
        api_key: expect.stringMatching(/^svc_sk_live_in_[0-9A-Za-z]+$/),
      },
    });
    const keyed = await done(base, 'POST', '/v1/developer/register', {
      body: { ...sent, region: 'eu', public_key: newKeyPair().publicKey },
    });
    const actorId = keyed.text('sandbox.actor_id');
    expect(keyed.body.sandbox).toEqual({
      ...worldOf('sandbox'),
      api_key: expect.any(String),
      signing_key: { kid: `svc:actor:${actorId}#key-1`, algorithm: 'Ed25519' },
    });
    expect(keyed.text('production.api_key')).toMatch(/^svc_sk_live_eu_/);
  });

  test('the same registration again makes new actors', async () => {
    const body = { name: 'Twin', email: 'twin@example.com', region: 'eu' };
    const [one, two] = [
      await done(base, 'POST', '/v1/developer/register', { body }),
      await done(base, 'POST', '/v1/developer/register', { body }),
    ];
    expect(one.text('sandbox.actor_id')).not.toBe(two.text('sandbox.actor_id'));
  });

  test('an API key is shown once, is listed by its prefix, and is refused after its deletion', async () => {
    const made = await done(base, 'POST', '/v1/developer/keys', party, { name: 'ci' });
    expect(made.body).toEqual({ key_id: shape.uuid, api_key: expect.any(String), environment: 'sandbox', name: 'ci' });
    const secret = made.text('api_key');
    const me = await done(base, 'GET', '/v1/developer/me', { headers: { authorization: `Bearer ${secret}` } });
    expect(me.body).toEqual({
      actor_id: party.actorId,
      svc_id: party.svcId,
      role: 'PARTICIPANT',
      environment: 'sandbox',
      created_at: shape.time,
      keys: [
        expect.objectContaining({ key_id: party.keyId }),
        {
          key_id: made.text('key_id'),
          key_prefix: secret.slice(0, 18),
          environment: 'sandbox',
          name: 'ci',
          created_at: shape.time,
        },
      ],
    });
    expect(me.raw).not.toContain(secret);

    const stranger = await newParty(base);
    const path = `/v1/developer/keys/${made.text('key_id')}`;
    expectRefused(await rest(base, 'DELETE', path, stranger), 404, 'not_found');
    const gone = await done(base, 'DELETE', path, party);
    expect([gone.status, gone.raw]).toEqual([204, '']);
    const late = await rest(base, 'GET', '/v1/developer/me', { headers: { authorization: `Bearer ${secret}` } });
    expectRefused(late, 401, 'invalid_api_key');
    expect((await done(base, 'GET', '/v1/developer/me', party)).rows('keys')).toHaveLength(1);
  });
});

describe('actors and resolver', () => {
  test('an actor is made with or without a key, and anybody may read it', async () => {
    const bare = await done(base, 'POST', '/v1/actors', {});
    const actorId = bare.text('actor_id');
    const names = { actor_id: actorId, svc_id: `svc:actor:${actorId}`, role: 'PARTICIPANT' };
    expect(bare.body).toEqual(names);
    expect((await done(base, 'GET', `/v1/actors/${actorId}`)).body).toEqual({ ...names, created_at: shape.time });
    expect((await done(base, 'GET', `/v1/actors/lookup?svc_id=svc:actor:${actorId}`)).body).toEqual({
      ...names,
      resolve_url: `/resolve/svc:actor:${actorId}`,
    });
    expect((await done(base, 'GET', `/v1/actors/${actorId}/keys`)).raw).toBe('[]');

    const { publicKey } = newKeyPair();
    const body = { role: 'AUDITOR', public_key: publicKey, algorithm: 'Ed25519' };
    const keyed = await done(base, 'POST', '/v1/actors', { body });
    expect(keyed.body).toMatchObject({ role: 'AUDITOR' });
    expect(keyed.body.key).toEqual({
      kid: `${keyed.text('svc_id')}#key-1`,
      algorithm: 'Ed25519',
      public_key: publicKey,
      status: 'ACTIVE',
      preferred_signing: true,
    });
  });

  test('the resolver serves the whole document with cache headers, and answers 304', async () => {
    const answer = await done(base, 'GET', `/v1/resolve/${party.svcId}`);
    expect(answer.body).toEqual({
      id: party.svcId,
      actor_id: party.actorId,
      role: 'PARTICIPANT',
      status: 'ACTIVE',
      keys: [
        {
          kid: party.kid,
          algorithm: 'Ed25519',
          public_key: party.key.publicKey,
          status: 'ACTIVE',
          preferred_signing: true,
          valid_from: shape.time,
          created_at: shape.time,
        },
      ],
      preferred_signing: party.kid,
      trust_graph: null,
      authority_attestations: [],
      created_at: shape.time,
    });
    expect(answer.headers.get('cache-control')).toBe('public, max-age=60');
    const etag = answer.headers.get('etag') ?? '';
    expect(etag).toMatch(/^(W\/)?".+"$/);
    const again = await rest(base, 'GET', `/v1/resolve/${party.svcId}`, { headers: { 'if-none-match': etag } });
    expect([again.status, again.raw]).toEqual([304, '']);
    const other = await rest(base, 'GET', `/v1/resolve/${party.svcId}`, { headers: { 'if-none-match': '"other"' } });
    expect(other.status).toBe(200);
    const encoded = await done(base, 'GET', `/v1/resolve/${encodeURIComponent(party.svcId)}`);
    expect(encoded.body).toEqual(answer.body);
  });

  test('an unknown actor is not_found', async () => {
    const nobody = '0199aaaa-0000-7000-8000-000000000001';
    expectRefused(await rest(base, 'GET', `/v1/resolve/svc:actor:${nobody}`), 404, 'not_found');
    expectRefused(await rest(base, 'GET', `/v1/actors/${nobody}`), 404, 'not_found');
    expectRefused(await rest(base, 'GET', `/v1/actors/${nobody}/keys`), 404, 'not_found');
    expectRefused(await rest(base, 'GET', `/v1/actors/lookup?svc_id=svc:actor:${nobody}`), 404, 'not_found');
  });

  test('the network lists actors in the order of their creation, in pages', async () => {
    const read = (query: string) => done(base, 'GET', `/v1/network/actors${query}`, party);
    const all = await read('?limit=1000');
    expect(all.body).toMatchObject({ limit: 1000, offset: 0, count: all.rows('actors').length });
    expect(Object.keys(all.rows('actors')[0] ?? {})).toEqual(['actor_id', 'svc_id', 'role']);
    const ids = all.rows('actors').map((actor) => actor.actor_id);
    expect(ids).toEqual(ids.toSorted());
    const page = await read('?limit=2&offset=1');
    expect(page.body).toMatchObject({ limit: 2, offset: 1, count: 2 });
    expect(page.rows('actors').map((actor) => actor.actor_id)).toEqual(ids.slice(1, 3));
    // Others may register meanwhile, where the service is not this file's alone.
    const newest = (await read('?limit=1000&order=desc')).rows('actors').map((actor) => actor.actor_id);
    expect(newest).toEqual(newest.toSorted().toReversed());
    expect(newest).toContain(party.actorId);
    const [first, second] = (await read('?limit=2&order=desc&offset=1')).rows('actors').map((actor) => actor.actor_id);
    expect([first, second].toSorted()).toEqual([second, first]);
    expect((await read('')).body).toMatchObject({ limit: 20, offset: 0 });
  });
});
