/** Calls a live node through openapi-fetch, with the types of openapi-typescript. */
import assert from 'node:assert/strict';
import createClient from 'openapi-fetch';
import type { paths } from './client/schema.js';

const baseUrl = process.env.BASE_URL ?? '';
const anonymous = createClient<paths>({ baseUrl });

async function register(name: string) {
  const body = { name, email: 'office@acme.example', region: 'eu' } as const;
  const { data } = await anonymous.POST('/v1/developer/register', { body });
  assert.ok(data);
  return data.sandbox;
}

assert.equal((await anonymous.GET('/v1/health')).data?.status, 'ok');
const buyer = await register('Buyer');
const supplier = await register('Supplier');
const caller = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${buyer.api_key}` } });
const { data: opened } = await caller.POST('/v1/ledgers', { body: { supplier_svc_id: supplier.svc_id } });
assert.ok(opened);
const { data: page } = await caller.GET('/v1/ledgers/{ledger_id}/events', {
  params: { path: { ledger_id: opened.id }, query: { from: '2020-01-01T00:00:00Z', limit: 10 } },
});
assert.deepEqual(
  page?.events.map(({ event_type }) => event_type),
  ['GENESIS', 'ORDER_OPENED'],
);
const { error } = await caller.GET('/v1/ledgers/{ledger_id}', {
  params: { path: { ledger_id: '0199aaaa-0000-7000-8000-00000000dead' } },
});
assert.equal(error?.error.code, 'not_found');
