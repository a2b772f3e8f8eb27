import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import { delegate, grant, stranger, uuid } from '../../support/commands.ts';
import { checkDecisions, opened as openedOrder, withPayload } from '../../support/decided-events.ts';
import { entity, type Kind, kinds, opened, organization } from '../../support/ledger-kinds.ts';
import { chainOf } from '../../support/world.ts';

const forms = (found: ReturnType<typeof checkDecisions>) => found.map(({ seq, type, detail }) => [seq, type, detail]);

describe('GENESIS', () => {
  const allKinds = Object.keys(kinds) as Kind[];
  /** The events of a new ledger whose GENESIS says something else. */
  const withGenesis = (kind: Kind, change: Readonly<Record<string, unknown>>) => {
    const [genesis, ...others] = opened(kind).events;
    if (genesis === undefined) throw new Error('there is no GENESIS');
    const payload = Object.entries({ ...JSON.parse(genesis.payload), ...change }).filter(
      ([, value]) => value !== undefined,
    );
    return [{ ...genesis, payload: canonicalJson(Object.fromEntries(payload)) }, ...others];
  };

  test.each(allKinds)('of an %s is as the service writes it', (kind) => {
    expect(checkDecisions(opened(kind).events)).toEqual([]);
  });

  test.each<[Kind, Readonly<Record<string, unknown>>, string]>([
    ['order', { primary_actor_id: stranger }, 'payload.primary_actor_id is not what the service writes here'],
    ['order', { entity_id: entity }, 'payload.entity_id is not what the service writes here'],
    ['order', { note: 'owed: 5' }, 'payload.note is not what the service writes here'],
    ['order', { supplier_actor_id: undefined }, 'payload.supplier_actor_id is missing'],
    ['order', { buyer_actor_id: 'mallory' }, 'payload.buyer_actor_id must be a UUID'],
    ['order', { buyer_organization_id: {} }, 'payload.buyer_organization_id must be a UUID'],
    ['order', { buyer_organization_id: null }, 'payload.buyer_organization_id must be a UUID'],
    ['order', { ledger_type: 'constructor' }, 'payload.ledger_type is none of the types of ledgers'],
    ['order', { ledger_type: ['ORDER'] }, 'payload.ledger_type is none of the types of ledgers'],
    ['facility root', { counterparty_actor_id: stranger }, 'payload.counterparty_actor_id is not what the service'],
    ['facility root', { organization_id: undefined }, 'payload.organization_id is missing'],
    ['entity root', { entity_id: undefined }, 'payload.entity_id is missing'],
    ['entity root', { organization_id: organization }, 'payload.organization_id is not what the service writes here'],
    ['engagement', { primary_actor_id: undefined }, 'payload.primary_actor_id is missing'],
    ['engagement', { purpose: { any: ['thing'] } }, 'payload.purpose must be a label'],
    ['engagement', { purpose: '\u202eTIDUA' }, 'payload.purpose must be a label'],
    ['engagement', { buyer_actor_id: stranger }, 'payload.buyer_actor_id is not what the service writes here'],
  ])('of an %s is found with %j', (kind, change, detail) => {
    const [first] = forms(checkDecisions(withGenesis(kind, change)));
    expect(first).toEqual([0, 'contradiction', expect.stringContaining(detail)]);
  });

  test('is followed by an ORGANIZATION_REGISTERED of the service', () => {
    const [genesis, registered] = opened('facility root').events;
    if (genesis === undefined || registered === undefined) throw new Error('there are no two events');
    expect(forms(checkDecisions([genesis, { ...registered, actorType: 'human' }]))).toEqual([
      [1, 'contradiction', 'actor_type is not what the service writes here'],
    ]);
  });
});

describe('a grant', () => {
  const asked = [...openedOrder, grant({ access: 'read' })];
  const access = [...openedOrder, grant({ access: 'read', role: 'ACCESS', expiresAt: '2030-01-01T00:00:00.000Z' })];

  test.each([
    [asked, { amount: 1_000_000 }, 'payload.amount is not what the service writes here'],
    [asked, { ledger_id: uuid(1) }, 'payload.ledger_id is not what the service writes here'],
    [asked, { access: 'write' }, 'payload.permissions is not that of the access'],
    [asked, { role: 'x\n\u202e' }, 'payload.role must be a label'],
    [asked, { delegate_actor_id: 'me' }, 'payload.delegate_actor_id must be a UUID'],
    [asked, { expires_at: null }, 'payload.expires_at must be a time (RFC 3339)'],
    [asked, { replaces_link_id: 7 }, 'payload.replaces_link_id must be a UUID'],
    [access, { permissions: { access: 'write' } }, 'payload.permissions is not that of the access'],
    [access, { permissions: { access: 'read', more: 1 } }, 'payload.permissions is not that of the access'],
    [access, { access: 'all' }, 'payload.permissions is not that of the access'],
    [access, { role: 'OWNER' }, 'payload.role is not that of the access'],
  ])('is found with what the service does not write', (commands, change, detail) => {
    const found = checkDecisions(withPayload(chainOf(...commands).events, change));
    expect(forms(found)).toEqual([[3, 'contradiction', detail]]);
  });

  test('keeps permissions that only its author knows', () => {
    const events = chainOf(...openedOrder, grant({ permissions: '{"access":"read","rooms":[1,null]}' })).events;
    expect(checkDecisions(events)).toEqual([]);
    expect(checkDecisions(chainOf(...access).events)).toEqual([]);
  });

  test('has a link of its own, also where events are missing', () => {
    const again = (change: Parameters<typeof grant>[0]) => chainOf(...openedOrder, grant(), grant(change)).events;
    const found = [[4, 'contradiction', 'its link_id is that of another grant']];
    for (const change of [{ delegateActorId: stranger }, { role: 'AUDITOR' }, { access: 'read' as const }]) {
      expect(forms(checkDecisions(again(change)))).toEqual(found);
      expect(forms(checkDecisions(again(change).slice(2)))).toEqual(found);
    }
    const elsewhere = chainOf(...openedOrder, grant(), grant({ scope: 'ledger', delegateActorId: delegate }));
    expect(forms(checkDecisions(elsewhere.events))).toEqual(found);
  });

  test('that was recorded twice of one request is one grant', () => {
    expect(checkDecisions(chainOf(...openedOrder, grant(), grant()).events)).toEqual([]);
  });
});
