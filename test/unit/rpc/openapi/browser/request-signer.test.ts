import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { eventSigningInput } from '../../../../../src/client/signing/signed-calls.ts';
import {
  entityRequestInput,
  publicKeyBase64,
  type SigningInput,
  signatureHeaders,
  signerFromPrivateKey,
} from '../../../../../src/client/signing/signing.ts';
import { ledgerFacts } from '../../../../../src/domain/event/facts.ts';
import { type Paths, RequestSigner } from '../../../../../src/rpc/openapi/browser/request-signer.ts';
import { signingKey } from '../../../../../src/rpc/openapi/browser/signing-key.ts';
import { openApiDocument } from '../../../../../src/rpc/openapi/document.ts';

const { privateKey } = generateKeyPairSync('ed25519');
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const actor = '01997f3e-5a10-7fe4-9b4e-160270739be6';
const ledger = '01997f3e-5a10-7a56-9145-270ce6b3bebd';
const master = '01997f3e-5a10-7756-9666-99b77db631f5';
const kid = `svc:actor:${actor}#key-2`;
const now = 1_790_000_000_000;

const genesis = {
  event_type: 'GENESIS',
  payload: { ledger_type: 'ORDER', buyer_actor_id: actor, supplier_actor_id: ledger },
  created_at: '2026-11-21T02:06:39.123Z',
  hash: '00',
};
const answers: Readonly<Record<string, unknown>> = {
  '/v1/developer/me': { actor_id: actor },
  [`/v1/actors/${actor}/keys`]: [
    { kid: `svc:actor:${actor}#key-1`, public_key: 'other' },
    { kid, public_key: publicKeyBase64(privateKey) },
  ],
  [`/v1/ledgers/${ledger}/events?limit=1`]: { events: [genesis] },
  [`/v1/traceledger/master/${master}`]: { ledger_id: ledger, business_ref: 'PO-1', scope: 'ORDER' },
};

/** What signing reads, and the headers that it sends. */
const read: { readonly path: string; readonly headers: Readonly<Record<string, string>> }[] = [];

async function signer(key = pem): Promise<RequestSigner> {
  read.length = 0;
  const { paths } = openApiDocument() as { paths: Paths };
  const fetched = async (url: string, { headers }: { headers: Readonly<Record<string, string>> }) => {
    const { pathname, search } = new URL(url);
    read.push({ path: pathname + search, headers });
    const answer = answers[pathname + search];
    return answer === undefined ? new Response(null, { status: 404 }) : Response.json(answer);
  };
  return new RequestSigner('http://node.example', paths, await signingKey(key), fetched, () => now);
}

/** What the client library sends for the same input. */
async function byClient(input: SigningInput | null): Promise<unknown> {
  if (input === null) throw new Error('Nothing is signed');
  const headers = await signatureHeaders(signerFromPrivateKey(privateKey, kid), input);
  return { 'X-Signing-Key-ID': headers['x-signing-key-id'], 'X-Actor-Sig': headers['x-actor-sig'] };
}

const facts = {
  ledger: async () =>
    ledgerFacts({ ledgerId: ledger, payload: JSON.stringify(genesis.payload), createdAt: '', hash: '' }),
  master: async () => ({ masterId: master, ledgerId: ledger, businessRef: 'PO-1', scope: 'ORDER' }),
  organizationLedger: async () => '',
  rootLedger: async () => '',
  caller: async () => actor,
  noteMaster: () => {},
};
const headers = { Authorization: 'Bearer key', 'Content-Type': 'application/json' };

test('an append is signed as the client library signs it', async () => {
  const url = `http://node.example/v1/traceledger/master/${master}/events`;
  const payload = { b: 'ä & <', a: 1.5, expires_at: null };
  const body = JSON.stringify({ event_type: 'GOODS_COUNTED', payload }, null, 2);
  const signed = await (await signer()).sign({ url, method: 'POST', headers, body });
  const request = { uuid: master, eventType: 'GOODS_COUNTED', payload };
  expect(signed).toEqual(await byClient(await eventSigningInput('appendEvent', request, facts)));
});

test('a closing and a grant are signed as the client library signs them', async () => {
  const close = { url: `/v1/ledgers/${ledger}/close`, method: 'PATCH', headers };
  const closed = await (await signer()).sign(close);
  expect(closed).toEqual(await byClient(await eventSigningInput('closeLedger', { ledgerId: ledger }, facts)));
  const body = JSON.stringify({ ledger_id: ledger, delegate_actor_id: master, role: 'OPS' });
  const granted = await (await signer()).sign({ url: '/v1/delegation/ledger', method: 'POST', headers, body });
  const grant = { ledgerId: ledger, delegateActorId: master, role: 'OPS' };
  expect(granted).toEqual(await byClient(await eventSigningInput('grantLedgerDelegation', grant, facts)));
});

test('a call of an entity that writes no event of its own is signed as a whole, and so is what signing reads', async () => {
  const entity = { 'X-ACTOR-ID': actor, 'X-ACTOR-TYPE': 'device' };
  const path = `/v1/ledgers/${ledger}/events?limit=5`;
  const signed = await (await signer()).sign({ url: path, method: 'GET', headers: entity });
  const timestamp = new Date(now).toISOString();
  const wire = { httpMethod: 'GET', path, body: new Uint8Array() };
  const expected = await byClient(entityRequestInput(actor, wire, timestamp));
  expect(signed).toEqual({ ...(expected as object), 'X-Timestamp': timestamp });

  const append = { url: `/v1/traceledger/master/${master}/events`, method: 'POST', headers: entity };
  const body = JSON.stringify({ event_type: 'READING', payload: {} });
  await (await signer()).sign({ ...append, body });
  const looked = read.filter(({ path: readPath }) => !readPath.endsWith('/keys'));
  expect(looked.length).toBe(2);
  for (const { headers: sent } of looked) expect(sent).toMatchObject({ ...entity, 'X-Actor-Sig': expect.any(String) });
});

test('a call without a credential, and a read with an API key, get no signature', async () => {
  const open = { url: '/v1/health', method: 'GET', headers: {} };
  expect(await (await signer()).sign(open)).toEqual({});
  expect(await (await signer()).sign({ url: `/v1/ledgers/${ledger}`, method: 'GET', headers })).toEqual({});
  expect(read).toEqual([]);
});

test('a key that is not one of the caller is refused before the call is sent', async () => {
  const other = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const close = { url: `/v1/ledgers/${ledger}/close`, method: 'PATCH', headers };
  await expect((await signer(other)).sign(close)).rejects.toThrow('not enrolled for actor');
});

test('only an Ed25519 private key in PEM form is taken', async () => {
  await expect(signingKey('svc_sk_test_1')).rejects.toThrow('no private key in PEM form');
  const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  await expect(signingKey(p256.export({ type: 'pkcs8', format: 'pem' }).toString())).rejects.toThrow('no Ed25519');
});
