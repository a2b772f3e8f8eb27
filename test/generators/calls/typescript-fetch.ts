/** Calls a live node through the client of openapi-generator's typescript-fetch. */
import assert from 'node:assert/strict';
import {
  Configuration,
  EventsApi,
  HealthApi,
  LedgersApi,
  RegisterApi,
  RegisterDeveloperRequestRegionEnum,
  ResponseError,
} from './client/index.js';

const basePath = process.env.BASE_URL ?? '';
const anonymous = new Configuration({ basePath });

async function register(name: string) {
  const request = { name, email: 'office@acme.example', region: RegisterDeveloperRequestRegionEnum.Eu };
  return (await new RegisterApi(anonymous).registerDeveloper({ registerDeveloperRequest: request })).sandbox;
}

assert.equal((await new HealthApi(anonymous).getHealth({})).status, 'ok');
const buyer = await register('Buyer');
const supplier = await register('Supplier');
const caller = new Configuration({ basePath, accessToken: buyer.apiKey });
const ledgers = new LedgersApi(caller);
const opened = await ledgers.createLedger({ createLedgerRequest: { supplierSvcId: supplier.svcId } });
const page = await new EventsApi(caller).listLedgerEvents({
  ledgerId: opened.id,
  from: '2020-01-01T00:00:00Z',
  limit: 10,
});
assert.deepEqual(
  page.events.map(({ eventType }) => eventType),
  ['GENESIS', 'ORDER_OPENED'],
);
assert.equal(page.integrity.verified, true);
await assert.rejects(
  ledgers.getLedger({ ledgerId: '0199aaaa-0000-7000-8000-00000000dead' }),
  (error) => error instanceof ResponseError && error.response.status === 404,
);
