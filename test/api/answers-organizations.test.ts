import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { nodeForTests } from '../support/node-for-tests.ts';
import { onboarding } from '../support/organizations.ts';
import { newParty, type Party } from '../support/parties.ts';
import { done, expectRefused, type Fields, rest, shape } from '../support/parties-rest.ts';

const { base } = await nodeForTests();
const owner = await newParty(base);

const required = { ...onboarding, legal_name: 'ACME GmbH' };

const onboard = (path: string, body: Fields, by: Party = owner) => rest(base, 'POST', path, by, body);

test.each(['/v1/onboarding/organization', '/v1/onboarding/supplier'])(
  '%s creates an organization and its root ledger',
  async (path) => {
    const body = { ...required, region: 'BY', city: 'München', supplier_name: 'ACME', registered_address: 'Street 1' };
    const made = await onboard(path, body);
    expect(made.body).toEqual({
      request_id: shape.uuid,
      organization_id: shape.uuid,
      frl_ledger_id: shape.uuid,
      status: 'APPROVED',
    });
    const ids = { organization_id: made.text('organization_id'), request_id: made.text('request_id') };
    const read = await done(base, 'GET', `/v1/organizations/${ids.organization_id}`, owner);
    expect(read.body).toEqual({
      ...body,
      ...ids,
      actor_id: owner.actorId,
      frl_ledger_id: made.text('frl_ledger_id'),
      status: 'APPROVED',
      trade_name: null,
      postal_code: null,
      website: null,
      phone: null,
      created_at: shape.time,
    });

    const root = await done(base, 'GET', `/v1/ledgers/${made.text('frl_ledger_id')}/events`, owner);
    expect(root.body.integrity).toEqual({ verified: true, issues: [] });
    expect(root.rows('events').map(({ event_type, actor_id, payload }) => ({ event_type, actor_id, payload }))).toEqual(
      [
        {
          event_type: 'GENESIS',
          actor_id: null,
          payload: {
            ledger_type: 'FACILITY_ROOT',
            primary_actor_id: owner.actorId,
            organization_id: ids.organization_id,
          },
        },
        { event_type: 'ORGANIZATION_REGISTERED', actor_id: owner.actorId, payload: { ...body, ...ids } },
      ],
    );
  },
);

test('an organization needs the required fields only', async () => {
  expect((await onboard('/v1/onboarding/organization', required)).status).toBe(200);
});

test('an actor owns several organizations, which are listed in order and found by the id of the actor', async () => {
  const several = await newParty(base);
  const made: string[] = [];
  for (const legal_name of ['First', 'Second', 'Second']) {
    made.push(
      (await onboard('/v1/onboarding/organization', { ...required, legal_name }, several)).text('organization_id'),
    );
  }
  const list = await done(base, 'GET', `/v1/organizations/?actor_id=${several.actorId}`, several);
  expect(list.body).toEqual({
    actor_id: several.actorId,
    count: 3,
    organizations: made.map((organization_id, at) => ({ organization_id, legal_name: at === 0 ? 'First' : 'Second' })),
  });
  const own = await done(base, 'GET', '/v1/organizations', several);
  expect(own.body).toEqual(list.body);
  const byActor = await done(base, 'GET', `/v1/organizations/${several.actorId}`, several);
  expect(byActor.body).toMatchObject({ organization_id: made[0], legal_name: 'First' });
});

test('an organization takes enriched fields, but none of its identity', async () => {
  const id = (await onboard('/v1/onboarding/organization', required)).text('organization_id');
  const enrich = (body: unknown) => rest(base, 'PATCH', `/v1/organizations/${id}/enrich`, owner, body);
  const allowed = {
    trade_name: 'Acme',
    postal_code: '80331',
    city: 'München',
    region: 'BY',
    primary_email: 'new@acme.example',
    registered_address: 'Street 2',
    website: 'https://acme.example',
    phone: '+49 89 1',
  };
  expect((await enrich(allowed)).body).toEqual({ organization_id: id, status: 'enriched' });
  const read = await done(base, 'GET', `/v1/organizations/${id}`, owner);
  expect(read.body).toMatchObject({ ...allowed, legal_name: 'ACME GmbH', status: 'APPROVED' });
  for (const field of ['legal_name', 'country', 'vat_tax_number', 'status', 'actor_id', 'terms_version']) {
    const answer = await enrich({ [field]: 'XX' });
    expectRefused(answer, 400, 'invalid_argument');
    expect(answer.body.error).toMatchObject({ details: { field } });
  }
  expect((await done(base, 'GET', `/v1/organizations/${id}`, owner)).body).toEqual(read.body);
});

test('an entity is onboarded, read and found by exact filters; only onboarding returns its fingerprint', async () => {
  // Names of its own, whatever else was onboarded where it runs.
  const unique_id = `press-${process.pid}-${Date.now()}`;
  const entity_type = unique_id.toUpperCase();
  const sent = { display_name: 'Press', entity_type, unique_id, metadata: { line: 'A', __proto__x: [1, 2.5] } };
  const made = await done(base, 'POST', '/v1/entities/onboard', { body: { ...sent, owner_actor_id: owner.actorId } });
  const named = {
    entity_id: made.text('entity_id'),
    actor_id: made.text('actor_id'),
    entity_type,
    display_name: 'Press',
  };
  const full = { ...named, actor_type: 'device', trust_level: 'BASIC', unique_id };
  expect(made.body).toEqual({
    ...full,
    fingerprint: createHash('sha256').update(`${entity_type}\0${unique_id}`).digest('hex'),
  });
  const read = await done(base, 'GET', `/v1/entities/${named.actor_id}`);
  expect(read.body).toEqual({ ...full, metadata: sent.metadata, created_at: shape.time });

  const again = await done(base, 'POST', '/v1/entities/onboard', {
    body: { ...sent, display_name: 'Other', metadata: {} },
  });
  expect(again.body).toEqual(made.body);
  expect((await done(base, 'GET', `/v1/entities/${named.actor_id}`)).body).toEqual(read.body);

  const another = { ...sent, display_name: 'A press', unique_id: `another ${unique_id}` };
  const other = await done(base, 'POST', '/v1/entities/onboard', { body: another });
  const list = async (query: string) => (await done(base, 'GET', `/v1/entities/?${query}`)).body;
  const one = { count: 1, entities: [named] };
  expect(await list(`unique_id=${unique_id}`)).toEqual(one);
  expect(await list(`entity_type=${entity_type}&display_name=Press&trust_level=BASIC&unique_id=${unique_id}`)).toEqual(
    one,
  );
  for (const query of [
    `unique_id=${unique_id.toUpperCase()}`,
    'display_name=press',
    'display_name=Pres',
    'trust_level=basic',
    `unique_id=${unique_id}&entity_type=SENSOR`,
  ]) {
    expect(await list(query)).toEqual({ count: 0, entities: [] });
  }
  const machines = await done(base, 'GET', `/v1/entities?entity_type=${entity_type}`);
  expect(machines.rows('entities').map((entity) => entity.actor_id)).toEqual([named.actor_id, other.text('actor_id')]);
  const second = await done(base, 'GET', `/v1/entities?entity_type=${entity_type}&limit=1&offset=1`);
  expect(second.rows('entities').map((entity) => entity.actor_id)).toEqual([other.text('actor_id')]);
  expectRefused(await rest(base, 'GET', `/v1/entities/${owner.actorId}`), 404, 'not_found');
});
