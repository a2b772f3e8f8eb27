import { describe, expect, test } from 'vitest';
import { ledgerClosedSignedForms, masterClosedSignedForms } from '../../../src/domain/event/service-events.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import {
  buyer,
  closeLedger,
  closeMaster,
  createMaster,
  ledgerId,
  masterId,
  signature,
  supplier,
} from '../../support/commands.ts';
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
import { isSealed, only } from '../../support/world.ts';

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

  test('an unsigned closing stores no signature', () => {
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
