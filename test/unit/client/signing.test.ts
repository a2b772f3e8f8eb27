import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Event, type JsonObject, publicKeyBase64, signerFromPrivateKey } from '../../../src/client/index.ts';
import { createFacts } from '../../../src/client/signing/facts.ts';
import { eventSigningInput } from '../../../src/client/signing/signed-calls.ts';
import { digestOf, entityRequestInput, signatureHeaders } from '../../../src/client/signing/signing.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import { sha256Hex } from '../../../src/domain/keys/hash.ts';
import { ed25519Key } from '../../../src/domain/keys/key-object.ts';
import { at } from '../../support/vector-chain.ts';
import { vectors } from '../../support/vectors.ts';

const seed = Buffer.from(vectors.keys.supplier.seed_hex, 'hex');
const privateKey = ed25519Key(seed);
const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();

const me = '0193a000-0000-7000-8000-00000000000a';
const buyer = '0193a000-0000-7000-8000-00000000000b';
const ledgerId = '0193a000-0000-7000-8000-000000000001';
const masterId = '0193a000-0000-7000-8000-0000000000aa';
const frl = '0193a000-0000-7000-8000-000000000002';
const organizationId = '0193a000-0000-7000-8000-0000000000f1';
const entityId = '0193a000-0000-7000-8000-0000000000e1';
const delegateActorId = '0193a000-0000-7000-8000-00000000000d';

const order: JsonObject = { ledger_type: 'ORDER', buyer_actor_id: buyer, supplier_actor_id: me };

const sourceOf = (genesis: JsonObject) => ({
  genesis: async (id: string): Promise<Event | undefined> => ({ ...at(0), ledgerId: id, payload: genesis }),
  master: async (id: string) => ({ masterId: id, ledgerId, businessRef: 'PO-2026-0001', scope: 'ORDER' }),
  organizationLedger: async () => frl,
  rootLedger: async () => ledgerId,
  caller: async () => me,
});

const inputOf = async (name: string, request: object, genesis: JsonObject = order) => {
  const input = await eventSigningInput(name, request, createFacts(sourceOf(genesis)));
  if (input === null) throw new Error(`${name} is not signed`);
  return { ...input, signed: JSON.parse(input.canonical) as unknown };
};

describe('the digest and signature of the vectors', () => {
  it.each(vectors.signatures)('are made for $name', async (vector) => {
    const canonical = canonicalJson(vector.sig_payload);
    expect(canonical).toBe(vector.canonical_json);
    const input = { eventType: vector.event_type, ledgerId: vector.ledger_id, canonical };
    expect(Buffer.from(digestOf(input)).toString('hex')).toBe(vector.digest_hex);
    expect(await signatureHeaders(signerFromPrivateKey(seed, vectors.kid), input)).toEqual({
      'x-actor-sig': vector.signature_base64,
      'x-signing-key-id': vectors.kid,
    });
  });

  it('are those of a business event with its injected fields', async () => {
    const vector = vectors.signatures[1];
    const payload = { carrier: 'BlueDart', items: [{ unit: 'kg', sku: 'WHEAT-001', quantity: 500 }], weight: 12.5 };
    const input = await inputOf('appendEvent', { uuid: masterId, eventType: 'SHIPMENT_DISPATCHED', payload });
    expect(input).toMatchObject({ ledgerId, eventType: 'SHIPMENT_DISPATCHED', canonical: vector?.canonical_json });
  });

  it('are those of a new master', async () => {
    const vector = vectors.signatures[0];
    const input = await inputOf('createMaster', { ledgerId, businessRef: 'PO-2026-0001', scope: 'ORDER' });
    expect(input).toMatchObject({ eventType: vector?.event_type, canonical: vector?.canonical_json });
  });
});

describe('signers', () => {
  it('made of PEM, KeyObject and seed sign alike', async () => {
    const digest = Buffer.alloc(32, 7);
    const made = await Promise.all([pem, privateKey, seed].map((key) => signerFromPrivateKey(key).sign(digest)));
    expect(new Set(made).size).toBe(1);
    expect(publicKeyBase64(privateKey)).toBe(vectors.keys.supplier.public_key_base64);
  });

  it('take a PKCS#8 key of version 2, which holds the public key as well (RFC 8410, section 10.3)', () => {
    const withPublicKey = [
      '-----BEGIN PRIVATE KEY-----',
      'MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC',
      'oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB',
      'Z9w7lshQhqowtrbLDFw4rXAxZuE=',
      '-----END PRIVATE KEY-----',
    ].join('\n');
    expect(publicKeyBase64(withPublicKey)).toBe('Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=');
  });

  it('send no key id if they have none', async () => {
    const headers = await signatureHeaders(signerFromPrivateKey(seed), { eventType: 'A', ledgerId, canonical: '{}' });
    expect(Object.keys(headers)).toEqual(['x-actor-sig']);
  });

  it('are refused for wrong seeds, public keys and other text', () => {
    expect(() => signerFromPrivateKey(Buffer.alloc(31))).toThrow(TypeError);
    expect(() => signerFromPrivateKey(Buffer.alloc(64))).toThrow(TypeError);
    expect(() => signerFromPrivateKey('-----BEGIN NONSENSE-----')).toThrow();
    const rsa =
      '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n';
    expect(() => signerFromPrivateKey(rsa)).toThrow(TypeError);
    expect(() => publicKeyBase64(createPublicKey(privateKey))).toThrow(TypeError);
  });
});

describe('the public key to enrol', () => {
  it.each([
    ['elliptic curve', () => generateKeyPairSync('ec', { namedCurve: 'P-256' })],
    ['X25519', () => generateKeyPairSync('x25519')],
    ['RSA', () => generateKeyPairSync('rsa', { modulusLength: 2048 })],
  ])('is refused for an %s key', (_, generate) => {
    expect(() => publicKeyBase64(generate().privateKey)).toThrow(TypeError);
  });
});

describe('what is signed', () => {
  const both = { buyer_organization_id: buyer, supplier_organization_id: organizationId };

  const root = { ledger_type: 'FACILITY_ROOT', primary_actor_id: me, organization_id: organizationId };
  const ofEntity = { ledger_type: 'ENTITY_ROOT', primary_actor_id: me, counterparty_actor_id: me, entity_id: entityId };
  const counterparty = { primary_actor_id: me, counterparty_actor_id: buyer };
  const engagement = { ledger_type: 'ENGAGEMENT', ...counterparty, purpose: 'X', entity_id: entityId };
  const parties = { buyer_actor_id: buyer, supplier_actor_id: me };
  const supplier = { supplier_actor_id: me, supplier_organization_id: organizationId };
  const uuid = { uuid: masterId };
  const master = { traceledger_master_uuid: masterId };
  const closings: [string, string, object, JsonObject, object][] = [
    ['an ORDER ledger', 'closeLedger', { ledgerId }, { ...order, ...both }, { ...parties, ...both }],
    ['an ORDER ledger without organizations', 'closeLedger', { ledgerId }, order, parties],
    ['a FACILITY_ROOT ledger', 'closeLedger', { ledgerId }, root, supplier],
    ['an ENGAGEMENT ledger', 'closeLedger', { ledgerId }, engagement, {}],
    ['an engagement', 'closeEngagement', { ledgerId }, engagement, {}],
    ['an ENTITY_ROOT ledger', 'closeRootLedger', { actorId: me }, ofEntity, {}],
    ['a master of an ORDER ledger', 'closeMaster', uuid, { ...order, ...both }, { ...master, ...supplier, ...both }],
    ['a master of an engagement', 'closeMaster', uuid, engagement, { ...master, entity_id: entityId }],
  ];
  it.each(closings)('the close of %s signs its own fields', async (_, name, request, genesis, fields) => {
    const { ledgerId: signedLedger, signed, eventType } = await inputOf(name, request, genesis);
    expect([signedLedger, eventType]).toEqual([ledgerId, name === 'closeMaster' ? 'MASTER_CLOSED' : 'LEDGER_CLOSED']);
    const { ledger_type } = genesis;
    const base = { ledger_id: ledgerId, ledger_type, requested_by_actor_id: me, status: 'CLOSED' };
    expect(signed).toEqual({ ...base, ...fields });
  });

  const role = 'OPS';
  const grant = { role, permissions: { access: 'write' } };
  const ofOrganization = { organization_id: organizationId };
  const ofLedger = { ledger_id: ledgerId };
  const ofMaster = { traceledger_master_id: masterId };
  const read = { access: 'read' };
  const access = { uuid: masterId, actorId: delegateActorId, ...read };
  const expiry = '2030-01-01T00:00:00+01:00';
  // The method, its request, and of the event the object, the ledger and the signed fields. All have the delegate too.
  const delegations: [string, object, string, string, object][] = [
    ['grantOrganizationDelegation', { organizationId, ...grant }, 'SUPPLIER', frl, { ...ofOrganization, ...grant }],
    ['revokeOrganizationDelegation', { organizationId }, 'SUPPLIER', frl, ofOrganization],
    ['grantLedgerDelegation', { ledgerId, role }, 'LEDGER', ledgerId, { ...ofLedger, role, permissions: {} }],
    ['revokeLedgerDelegation', { ledgerId }, 'LEDGER', ledgerId, ofLedger],
    ['grantMasterDelegation', { masterId, ...grant }, 'MASTER', ledgerId, { ...ofMaster, ...grant }],
    ['revokeMasterDelegation', { masterId }, 'MASTER', ledgerId, ofMaster],
    ['grantMasterAccess', access, 'MASTER', ledgerId, { ...ofMaster, ...read }],
    [
      'grantMasterAccess',
      { ...access, expiresAt: expiry },
      'MASTER',
      ledgerId,
      { ...ofMaster, ...read, expires_at: expiry },
    ],
  ];
  it.each(delegations)('%s signs its own fields (%#)', async (name, request, scope, signedLedger, fields) => {
    const given = name === 'grantMasterAccess' ? request : { ...request, delegateActorId };
    const input = await inputOf(name, given);
    const eventType = `${scope}_DELEGATION_${name.startsWith('grant') ? 'GRANTED' : 'REVOKED'}`;
    expect(input).toMatchObject({ eventType, ledgerId: signedLedger });
    expect(input.signed).toEqual({ ...fields, delegate_actor_id: delegateActorId });
  });

  it.each(['getLedger', 'createLedger', 'revokeMasterAccess', 'enrollActorKey'])(
    '%s takes no signature of an event',
    async (name) => {
      expect(await eventSigningInput(name, {}, createFacts(sourceOf(order)))).toBeNull();
    },
  );

  it('an entity request signs method, path with query, hash of the body and time', () => {
    const body = Buffer.from('{"require_arl":true}');
    const input = entityRequestInput(
      me,
      { httpMethod: 'PATCH', path: '/v1/entities/arl-gate?x=1', body },
      '2026-11-21T02:06:39.000Z',
    );
    expect(input).toMatchObject({ eventType: 'ENTITY_REQUEST', ledgerId: me });
    expect(JSON.parse(input.canonical)).toEqual({
      method: 'PATCH',
      path: '/v1/entities/arl-gate?x=1',
      body_hash: sha256Hex(body),
      timestamp: '2026-11-21T02:06:39.000Z',
    });
    const empty = entityRequestInput(me, { httpMethod: 'GET', path: '/', body: Buffer.alloc(0) }, 'now');
    expect(empty.canonical).toContain('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  });

  it('a payload member __proto__ is signed like any other', async () => {
    const payload = JSON.parse('{"__proto__":{"x":1},"constructor":2}') as JsonObject;
    const { canonical } = await inputOf('appendEvent', { uuid: masterId, eventType: 'PROTO', payload });
    expect(canonical).toContain('"__proto__":{"x":1}');
  });
});

describe('facts', () => {
  it('are read once for concurrent calls, and again after a failure', async () => {
    let asked = 0;
    const source = sourceOf(order);
    const facts = createFacts({
      ...source,
      master: async (id) => {
        asked += 1;
        if (asked === 1) throw new Error('not now');
        return source.master(id);
      },
    });
    const first = await Promise.allSettled([facts.master(masterId), facts.master(masterId)]);
    expect(first.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await Promise.all([facts.master(masterId), facts.master(masterId)]);
    expect(asked).toBe(2);
  });

  const other = '0193a000-0000-7000-8000-0000000000bb';
  const names = { ledgerId, businessRef: 'PO-2026-0001', scope: 'ORDER' };

  it.each(['appendEvent', 'closeMaster', 'grantMasterAccess'])(
    'of another master than the caller named are refused, so that %s signs nothing for it',
    async (name) => {
      const facts = createFacts({ ...sourceOf(order), master: async () => ({ ...names, masterId: other }) });
      const request = { uuid: masterId, eventType: 'A', payload: {}, actorId: delegateActorId, access: 'read' };
      await expect(eventSigningInput(name, request, facts)).rejects.toMatchObject({ code: 'invalid_answer' });
    },
  );

  it.each([
    ['an ORDER ledger', order],
    [
      'the root of another actor',
      { ledger_type: 'ENTITY_ROOT', primary_actor_id: buyer, counterparty_actor_id: buyer },
    ],
  ])('of %s in place of the root of the actor are refused, so that its close is not signed', async (_, genesis) => {
    const facts = createFacts(sourceOf(genesis));
    const close = eventSigningInput('closeRootLedger', { actorId: me }, facts);
    await expect(close).rejects.toMatchObject({ code: 'invalid_answer' });
  });

  it.each([{ ledgerId: other }, { businessRef: 'PO-2' }, { scope: 'X' }])(
    'of a new master are refused where they are not those that were asked for: %j',
    async (wrong) => {
      const facts = createFacts(sourceOf(order));
      expect(() => facts.noteMaster(names, { ...names, masterId: other, ...wrong })).toThrow(
        'is not that of the master',
      );
      facts.noteMaster(names, { ...names, masterId: other });
      expect((await facts.master(other)).masterId).toBe(other);
    },
  );

  it('are taken from the GENESIS of the ledger only', async () => {
    const facts = createFacts({ ...sourceOf(order), genesis: async () => undefined });
    await expect(facts.ledger(ledgerId)).rejects.toMatchObject({ code: 'invalid_answer' });
  });
});
