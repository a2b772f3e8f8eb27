import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/domain/canonical.ts';
import type { LedgerEvent } from '../../src/domain/event.ts';
import { grantOf } from '../../src/domain/grant.ts';
import { type LedgerFacts, ledgerFacts } from '../../src/domain/ledger-facts.ts';
import { masterFacts } from '../../src/domain/master-facts.ts';
import {
  accessSignedForms,
  grantSignedForms,
  injectedFields,
  ledgerClosedSignedForms,
  masterClosedSignedForms,
  masterCreatedSignedForms,
  organizationRegisteredPayload,
  revokeSignedForms,
} from '../../src/domain/service-events.ts';
import {
  append,
  buyer,
  closeLedger,
  closeMaster,
  createMaster,
  delegate,
  grant,
  ledgerId,
  masterId,
  type OpeningFacts,
  openingFacts,
  openLedger,
  orderFacts,
  revoke,
  signature,
  supplier,
  uuid,
} from '../support/commands.ts';
import { type Chain, chainOf, isSealed, only, start } from '../support/world.ts';

const organization = uuid(0x50);
const otherOrganization = uuid(0x51);
const entity = uuid(0x60);
const kid = `svc:actor:${supplier}#key-1`;

const kinds = {
  order: orderFacts,
  'order with organizations': {
    ...orderFacts,
    buyerOrganizationId: otherOrganization,
    supplierOrganizationId: organization,
  },
  'order with one organization': { ...orderFacts, supplierOrganizationId: organization },
  'facility root': openingFacts('FACILITY_ROOT', { primaryActorId: supplier, organizationId: organization }),
  'entity root': openingFacts('ENTITY_ROOT', {
    primaryActorId: supplier,
    counterpartyActorId: supplier,
    entityId: entity,
  }),
  engagement: openingFacts('ENGAGEMENT', {
    primaryActorId: supplier,
    counterpartyActorId: buyer,
    purpose: 'REPAIR',
  }),
  'engagement of an entity': openingFacts('ENGAGEMENT', {
    primaryActorId: supplier,
    counterpartyActorId: buyer,
    purpose: 'REPAIR',
    entityId: entity,
  }),
} satisfies Record<string, OpeningFacts>;
type Kind = keyof typeof kinds;

function factsOf(kind: Kind): LedgerFacts {
  return { ...kinds[kind], ledgerId, createdAt: start, genesisHash: 'ab'.repeat(32) };
}

function payloadOf(event: LedgerEvent): unknown {
  expect(event.payload).toBe(canonicalJson(JSON.parse(event.payload)));
  return JSON.parse(event.payload);
}

const registered = organizationRegisteredPayload(organization, uuid(0x52), {
  legal_name: 'Acme',
  country: 'IN',
  region: undefined,
});

function opened(kind: Kind): Chain {
  return chainOf(openLedger({ facts: kinds[kind], registeredPayload: kind === 'facility root' ? registered : null }));
}

describe('GENESIS and what opens a ledger', () => {
  const expected: Record<Kind, object> = {
    order: { ledger_type: 'ORDER', buyer_actor_id: buyer, supplier_actor_id: supplier },
    'order with organizations': {
      ledger_type: 'ORDER',
      buyer_actor_id: buyer,
      supplier_actor_id: supplier,
      buyer_organization_id: otherOrganization,
      supplier_organization_id: organization,
    },
    'order with one organization': {
      ledger_type: 'ORDER',
      buyer_actor_id: buyer,
      supplier_actor_id: supplier,
      supplier_organization_id: organization,
    },
    'facility root': { ledger_type: 'FACILITY_ROOT', primary_actor_id: supplier, organization_id: organization },
    'entity root': {
      ledger_type: 'ENTITY_ROOT',
      primary_actor_id: supplier,
      counterparty_actor_id: supplier,
      entity_id: entity,
    },
    engagement: {
      ledger_type: 'ENGAGEMENT',
      primary_actor_id: supplier,
      counterparty_actor_id: buyer,
      purpose: 'REPAIR',
    },
    'engagement of an entity': {
      ledger_type: 'ENGAGEMENT',
      primary_actor_id: supplier,
      counterparty_actor_id: buyer,
      purpose: 'REPAIR',
      entity_id: entity,
    },
  };

  test.each(Object.keys(kinds) as Kind[])('%s: its payload, and the facts read back from it', (kind) => {
    const [genesis] = opened(kind).events;
    if (genesis === undefined) throw new Error('no genesis');
    expect(payloadOf(genesis)).toEqual(expected[kind]);
    const { createdAt, genesisHash, ledgerId: id, ...facts } = ledgerFacts(genesis);
    expect(facts).toEqual(kinds[kind]);
    expect([createdAt, genesisHash, id]).toEqual([start, genesis.hash, ledgerId]);
  });

  test('which events are written, by whom, and that the authority seals them', () => {
    const types: Partial<Record<Kind, string[]>> = {
      order: ['GENESIS', 'ORDER_OPENED'],
      'facility root': ['GENESIS', 'ORGANIZATION_REGISTERED'],
      'entity root': ['GENESIS'],
      engagement: ['GENESIS'],
    };
    for (const [kind, expectedTypes] of Object.entries(types)) {
      const { events } = opened(kind as Kind);
      expect(events.map((event) => event.eventType)).toEqual(expectedTypes);
      expect(events.map((event) => event.actorId)).toEqual([null, supplier].slice(0, events.length));
      for (const event of events) {
        expect([event.actorType, event.actorSig, event.signingKeyId, event.master]).toEqual([
          'service',
          null,
          null,
          null,
        ]);
        expect(isSealed(event)).toBe(true);
      }
    }
  });

  test('ORDER_OPENED and ORGANIZATION_REGISTERED', () => {
    const [, opening] = opened('order with organizations').events;
    const [, registration] = opened('facility root').events;
    if (opening === undefined || registration === undefined) throw new Error('too few events');
    expect(payloadOf(opening)).toEqual({ buyer_actor_id: buyer, supplier_actor_id: supplier });
    expect(payloadOf(registration)).toEqual({
      legal_name: 'Acme',
      country: 'IN',
      organization_id: organization,
      request_id: uuid(0x52),
    });
  });

  test('onboarding fields cannot stand in for what the service says', () => {
    const payload = organizationRegisteredPayload(organization, uuid(0x52), {
      organization_id: 'mine',
      request_id: 'x',
    });
    expect(JSON.parse(payload)).toEqual({ organization_id: organization, request_id: uuid(0x52) });
  });
});

describe('TRACELEDGER_MASTER_CREATED and what is injected', () => {
  const master = { masterId, businessRef: 'PO-1', scope: 'ORDER' };
  const base = { traceledger_master_uuid: masterId, business_ref: 'PO-1', scope: 'ORDER' };

  test.each([
    ['order', { buyer_actor_id: buyer, supplier_actor_id: supplier }],
    ['order with organizations', { buyer_actor_id: buyer, supplier_actor_id: supplier }],
    ['facility root', { supplier_actor_id: supplier }],
    ['entity root', {}],
    ['engagement of an entity', {}],
  ] as const)('%s', (kind, parties) => {
    expect(injectedFields(factsOf(kind), master)).toEqual({ ...base, ...parties });
    const created = only(opened(kind).run(createMaster()));
    expect(payloadOf(created)).toEqual({ ...base, ...parties, ledger_id: ledgerId });
    expect(masterFacts(created)).toEqual({
      ...master,
      ledgerId,
      createdBy: supplier,
      createdAt: start,
      createdSeq: created.seq,
    });
    expect(created.master).toEqual({ id: masterId, prevHash: '', seq: 0 });
  });

  test('what is signed is ledger, reference and scope, and is kept beside the longer payload', () => {
    const [form] = masterCreatedSignedForms(ledgerId, 'PO-1', 'ORDER');
    expect(JSON.parse(form)).toEqual({ ledger_id: ledgerId, business_ref: 'PO-1', scope: 'ORDER' });
    const created = only(opened('order').run(createMaster({ signature: signature(kid, form) })));
    expect(created).toMatchObject({ actorSigPayload: form, signingKeyId: kid, authoritySig: null });
  });

  test('a reference that looks like JSON stays one text', () => {
    const businessRef = 'x","scope":"STOLEN","traceledger_master_uuid":"y';
    const created = only(opened('order').run(createMaster({ businessRef })));
    expect(masterFacts(created)).toMatchObject({ businessRef, scope: 'ORDER', masterId });
  });
});

describe('LEDGER_CLOSED', () => {
  const base = (kind: Kind) => ({
    ledger_id: ledgerId,
    ledger_type: kinds[kind].type,
    requested_by_actor_id: supplier,
    status: 'CLOSED',
  });
  const parties = { buyer_actor_id: buyer, supplier_actor_id: supplier };
  const forms: [Kind, object, object | null][] = [
    ['order', parties, { ...parties, buyer_organization_id: null, supplier_organization_id: null }],
    [
      'order with organizations',
      { ...parties, buyer_organization_id: otherOrganization, supplier_organization_id: organization },
      null,
    ],
    [
      'order with one organization',
      { ...parties, supplier_organization_id: organization },
      { ...parties, supplier_organization_id: organization, buyer_organization_id: null },
    ],
    [
      'facility root',
      { supplier_actor_id: supplier, supplier_organization_id: organization },
      {
        supplier_actor_id: supplier,
        supplier_organization_id: organization,
        buyer_actor_id: null,
        buyer_organization_id: null,
      },
    ],
    ['entity root', {}, null],
    ['engagement', {}, null],
    ['engagement of an entity', {}, null],
  ];

  test.each(forms)('%s: what may be signed, and what is stored', (kind, short, long) => {
    const accepted = ledgerClosedSignedForms(factsOf(kind), supplier);
    const expected = [short, ...(long === null ? [] : [long])].map((fields) => ({ ...base(kind), ...fields }));
    expect(accepted.map((form) => JSON.parse(form))).toEqual(expected);
    expect(accepted.map((form) => canonicalJson(JSON.parse(form)))).toEqual(accepted);
    for (const form of accepted) {
      const signed = signature(kid, form);
      const event = only(opened(kind).run(closeLedger({ signature: signed, actorType: 'human' })));
      expect(payloadOf(event)).toEqual({
        ...base(kind),
        ...short,
        requestor_sig: signed.signature,
        requestor_signing_key_id: kid,
      });
      expect(event).toMatchObject({ actorSig: null, signingKeyId: null, actorSigPayload: form, actorType: 'service' });
      expect(event.actorId).toBe(supplier);
      expect(isSealed(event)).toBe(true);
    }
  });

  test('without a signature there is none inside', () => {
    const event = only(opened('engagement').run(closeLedger()));
    expect(payloadOf(event)).toEqual(base('engagement'));
    expect(event.actorSigPayload).toBe(null);
  });
});

describe('MASTER_CLOSED', () => {
  const base = (kind: Kind) => ({
    traceledger_master_uuid: masterId,
    ledger_id: ledgerId,
    ledger_type: kinds[kind].type,
    requested_by_actor_id: supplier,
    status: 'CLOSED',
  });
  const forms: [Kind, object, object | null][] = [
    [
      'order',
      { supplier_actor_id: supplier },
      { supplier_actor_id: supplier, supplier_organization_id: null, buyer_organization_id: null },
    ],
    [
      'order with organizations',
      {
        supplier_actor_id: supplier,
        supplier_organization_id: organization,
        buyer_organization_id: otherOrganization,
      },
      null,
    ],
    [
      'facility root',
      { supplier_actor_id: supplier, supplier_organization_id: organization },
      { supplier_actor_id: supplier, supplier_organization_id: organization, buyer_organization_id: null },
    ],
    ['entity root', { entity_id: entity }, null],
    ['engagement of an entity', { entity_id: entity }, null],
    ['engagement', {}, { entity_id: null }],
  ];

  test.each(forms)('%s: what may be signed, and what is stored', (kind, short, long) => {
    const accepted = masterClosedSignedForms(factsOf(kind), masterId, supplier);
    const expected = [short, ...(long === null ? [] : [long])].map((fields) => ({ ...base(kind), ...fields }));
    expect(accepted.map((form) => JSON.parse(form))).toEqual(expected);
    for (const form of accepted) {
      const chain = opened(kind);
      chain.run(createMaster());
      const event = only(chain.run(closeMaster({ signature: signature(kid, form) })));
      expect(payloadOf(event)).toEqual({ ...base(kind), ...short });
      expect(event.actorSigPayload).toBe(form === event.payload ? null : form);
      expect(event).toMatchObject({ signingKeyId: kid, authoritySig: null, master: { id: masterId, seq: 1 } });
    }
  });
});

describe('grants', () => {
  const scopes = [
    ['organization', 'facility root', 'SUPPLIER_DELEGATION_GRANTED', { organization_id: organization }],
    ['ledger', 'order', 'LEDGER_DELEGATION_GRANTED', { ledger_id: ledgerId }],
    ['master', 'order', 'MASTER_DELEGATION_GRANTED', { traceledger_master_id: masterId }],
  ] as const;

  test.each(scopes)('%s: what is signed and what is stored', (scope, kind, eventType, object) => {
    const permissions = { access: 'read', note: 'ü', nested: { b: [1, { a: null }] } };
    const [form, ...others] = grantSignedForms(object, delegate, 'OPS', permissions);
    expect(others).toEqual([]);
    expect(JSON.parse(form)).toEqual({ ...object, delegate_actor_id: delegate, role: 'OPS', permissions });
    const chain = opened(kind);
    chain.run(createMaster());
    const command = grant({ scope, permissions: canonicalJson(permissions), requested: form });
    const event = only(chain.run({ ...command, signature: signature(kid, form) }));
    expect(event).toMatchObject({ eventType, actorSigPayload: form, authoritySig: null });
    expect(event.master).toEqual(scope === 'master' ? expect.objectContaining({ id: masterId, seq: 1 }) : null);
    expect(payloadOf(event)).toEqual({
      ...JSON.parse(form),
      link_id: command.linkId,
      granted_at: event.createdAt,
    });
    expect(grantOf(event)).toMatchObject({
      access: 'read',
      permissions: canonicalJson(permissions),
      expiresAt: null,
      grantedByActorId: supplier,
      eventId: event.id,
    });
  });

  test('without permissions: signed with an empty object or without the key, stored with one', () => {
    const object = { ledger_id: ledgerId };
    const base = { ...object, delegate_actor_id: delegate, role: 'OPS' };
    const forms = grantSignedForms(object, delegate, 'OPS', undefined);
    expect(forms.map((form) => JSON.parse(form))).toEqual([{ ...base, permissions: {} }, base]);
    for (const form of forms) {
      const command = grant({ scope: 'ledger', signature: signature(kid, form) });
      const event = only(opened('order').run(command));
      expect(payloadOf(event)).toMatchObject({ permissions: {} });
      expect(event.actorSigPayload).toBe(form);
    }
  });

  test('POST …/access: the request as sent is signed and stays, with its time in the form that was sent', () => {
    const expiresAt = '2026-11-21T05:30:00.5+02:00';
    const [form] = accessSignedForms(masterId, delegate, 'write', expiresAt);
    expect(JSON.parse(form)).toEqual({
      access: 'write',
      delegate_actor_id: delegate,
      expires_at: expiresAt,
      traceledger_master_id: masterId,
    });
    const chain = opened('order');
    chain.run(createMaster());
    const command = grant({ role: 'ACCESS', expiresAt: '2026-11-21T03:30:00.500Z', requested: form, access: 'write' });
    const event = only(chain.run({ ...command, permissions: '{"access":"write"}' }));
    expect(payloadOf(event)).toEqual({
      ...JSON.parse(form),
      role: 'ACCESS',
      permissions: { access: 'write' },
      link_id: command.linkId,
      granted_at: start,
    });
    expect(grantOf(event)).toMatchObject({ access: 'write', expiresAt: '2026-11-21T03:30:00.500Z' });
  });

  test('POST …/access without an end leaves it out', () => {
    expect(JSON.parse(accessSignedForms(masterId, delegate, 'read', undefined)[0])).not.toHaveProperty('expires_at');
  });

  test('a grant over another names the link that it replaces', () => {
    const chain = chainOf(openLedger(), createMaster(), grant());
    const event = only(chain.run(grant({ linkId: uuid(0xcd), access: 'read' })));
    expect(payloadOf(event)).toMatchObject({ link_id: uuid(0xcd), replaces_link_id: uuid(0xcc) });
  });

  test('a request cannot say what the service says', () => {
    const chain = chainOf(openLedger(), createMaster());
    const requested = canonicalJson({
      delegate_actor_id: delegate,
      link_id: 'mine',
      granted_at: '2000-01-01T00:00:00.000Z',
      role: 'OWNER',
      permissions: { access: 'write' },
      traceledger_master_id: 'another',
    });
    const event = only(chain.run({ ...grant({ role: 'AUDITOR', access: 'read' }), requested }));
    expect(payloadOf(event)).toEqual({
      delegate_actor_id: delegate,
      link_id: uuid(0xcc),
      granted_at: start,
      role: 'AUDITOR',
      permissions: { access: 'read' },
      traceledger_master_id: masterId,
    });
  });

  test('keys like __proto__ in permissions are kept, signed, and grant nothing', () => {
    const permissions = '{"__proto__":{"access":"write"},"constructor":1}';
    const requested = `{"delegate_actor_id":"${delegate}","ledger_id":"${ledgerId}","permissions":${permissions},"role":"AUDITOR"}`;
    const chain = opened('order');
    const event = only(chain.run({ ...grant({ scope: 'ledger', role: 'AUDITOR' }), permissions, requested }));
    expect(event.payload).toContain(`"permissions":${permissions}`);
    expect(grantOf(event)).toMatchObject({ access: 'read', permissions });
    expect(chain.refusal(append({ actorId: delegate }))).toBe('not_found');
    expect(chain.refusal(createMaster({ actorId: delegate }))).toBe('permission_denied');
  });
});

describe('revocations', () => {
  test.each([
    ['organization', 'facility root', 'SUPPLIER_DELEGATION_REVOKED', { organization_id: organization }],
    ['ledger', 'order', 'LEDGER_DELEGATION_REVOKED', { ledger_id: ledgerId }],
    ['master', 'order', 'MASTER_DELEGATION_REVOKED', { traceledger_master_id: masterId }],
  ] as const)('%s: what is signed and what is stored', (scope, kind, eventType, object) => {
    const [form] = revokeSignedForms(object, delegate);
    expect(JSON.parse(form)).toEqual({ ...object, delegate_actor_id: delegate });
    const chain = opened(kind);
    chain.run(createMaster());
    chain.run(grant({ scope }));
    const event = only(chain.run(revoke({ scope, signature: signature(kid, form) })));
    expect(event).toMatchObject({ eventType, actorSigPayload: form });
    expect(payloadOf(event)).toEqual({ ...JSON.parse(form), link_id: uuid(0xcc), revoked_at: event.createdAt });
  });
});
