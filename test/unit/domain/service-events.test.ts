import { describe, expect, test } from 'vitest';
import { ledgerFacts, masterFacts } from '../../../src/domain/event/facts.ts';
import {
  injectedFields,
  masterCreatedSignedForms,
  organizationRegisteredPayload,
} from '../../../src/domain/event/service-events.ts';
import { buyer, createMaster, ledgerId, masterId, signature, supplier, uuid } from '../../support/commands.ts';
import {
  entity,
  factsOf,
  type Kind,
  kid,
  kinds,
  opened,
  organization,
  otherOrganization,
  payloadOf,
} from '../../support/ledger-kinds.ts';
import { isSealed, only, start } from '../../support/world.ts';

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

  test.each(Object.keys(kinds) as Kind[])(
    'GENESIS of %s has its payload, and the facts are read back from it',
    (kind) => {
      const [genesis] = opened(kind).events;
      if (genesis === undefined) throw new Error('no genesis');
      expect(payloadOf(genesis)).toEqual(expected[kind]);
      const { createdAt, genesisHash, ledgerId: id, ...facts } = ledgerFacts(genesis);
      expect(facts).toEqual(kinds[kind]);
      expect([createdAt, genesisHash, id]).toEqual([start, genesis.hash, ledgerId]);
    },
  );

  test('each kind of ledger begins with its events, which the authority seals', () => {
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

  test('ORDER_OPENED and ORGANIZATION_REGISTERED have their payloads', () => {
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

  test('onboarding fields do not override fields of the service', () => {
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
  ] as const)('%s has its injected fields', (kind, parties) => {
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

  test('the signature covers ledger, reference and scope, and is stored beside the longer payload', () => {
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
