import { describe, expect, test } from 'vitest';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { isoTime } from '../../../src/domain/values/time.ts';
import {
  append,
  buyer,
  closeLedger,
  closeMaster,
  createMaster,
  delegate,
  grant,
  openingFacts,
  openLedger,
  revoke,
  siblingId,
  signature,
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { checkDecisions, opened, typesOf, withLast, withPayload } from '../../support/decided-events.ts';
import { chainOf, start, startMs } from '../../support/world.ts';

const later = (ms: number) => isoTime(startMs + ms);

describe('an honest history has no finding', () => {
  const organizationId = uuid(0x0f);
  const root = openLedger({
    facts: openingFacts('FACILITY_ROOT', { primaryActorId: supplier, organizationId }),
    registeredPayload: `{"name":"Mill","organization_id":"${organizationId}","request_id":"${uuid(9)}"}`,
  });
  const onOrganization = {
    scope: 'organization',
    requested: `{"delegate_actor_id":"${delegate}","organization_id":"${organizationId}","role":"OPS"}`,
  } as const;

  test.each<[string, Command[]]>([
    [
      'of an order with every kind of event',
      [
        ...opened,
        append(),
        append({ actorId: buyer, causedByHash: 'a'.repeat(64), payload: `{"caused_by_hash":"${'a'.repeat(64)}"}` }),
        append({ signature: signature('key', '{}') }),
        grant({ access: 'write' }),
        append({ actorId: delegate }),
        revoke(),
        closeMaster({ signature: signature('key') }),
        closeLedger({ signature: signature('key') }),
      ],
    ],
    [
      'in which a ledger closes with an open master and grants are revoked behind the close',
      [
        ...opened,
        grant(),
        grant({ scope: 'ledger', role: 'OWNER', delegateActorId: stranger, linkId: uuid(0xcd) }),
        closeLedger({ actorId: buyer }),
        revoke(),
        revoke({ scope: 'ledger', delegateActorId: stranger }),
      ],
    ],
    [
      'in which a grant is revoked behind the close of its master',
      [...opened, grant(), closeMaster(), revoke({ delegateActorId: null, linkId: uuid(0xcc) })],
    ],
    [
      'in which a grant takes the place of another and the new one is revoked',
      [
        ...opened,
        grant(),
        grant({ linkId: uuid(0xcd), access: 'read' }),
        revoke({ delegateActorId: null, linkId: uuid(0xcd) }),
        grant({ linkId: uuid(0xce) }),
      ],
    ],
    [
      'in which an owner by a ledger grant creates, grants and revokes',
      [
        openLedger(),
        grant({ scope: 'ledger', role: 'OWNER', delegateActorId: stranger, linkId: uuid(0xcd) }),
        createMaster({ actorId: stranger }),
        grant({ actorId: stranger }),
        append({ actorId: delegate }),
        revoke({ actorId: stranger }),
        grant({ scope: 'ledger', actorId: stranger, linkId: uuid(0xdd) }),
        createMaster({ actorId: delegate, masterId: siblingId }),
      ],
    ],
    [
      'of an organization, whose delegates write on its root ledger',
      [
        root,
        grant(onOrganization),
        createMaster({ actorId: delegate }),
        append({ actorId: delegate }),
        revoke({ scope: 'organization' }),
        closeLedger(),
      ],
    ],
    [
      'of a root ledger of an entity',
      [
        openLedger({
          facts: openingFacts('ENTITY_ROOT', {
            primaryActorId: supplier,
            counterpartyActorId: supplier,
            entityId: uuid(5),
          }),
        }),
        createMaster(),
        append(),
        closeMaster(),
        closeLedger(),
      ],
    ],
    [
      'of an engagement',
      [
        openLedger({
          facts: openingFacts('ENGAGEMENT', { primaryActorId: supplier, counterpartyActorId: buyer, purpose: 'AUDIT' }),
        }),
        createMaster({ actorId: buyer }),
        append(),
        closeLedger(),
      ],
    ],
  ])('%s', (_, commands) => {
    expect(checkDecisions(chainOf(...commands).events, start)).toEqual([]);
  });

  test('in which grants expire, are replaced and are revoked', () => {
    const chain = chainOf(...opened);
    const expiresAt = later(100);
    chain.run(grant({ access: 'write', expiresAt }), start);
    chain.run(append({ actorId: delegate }), later(99));
    expect(chain.refusal(append({ actorId: delegate }), later(100))).toBe('access_expired');
    chain.run(revoke(), later(200));
    chain.run(grant({ access: 'write', linkId: uuid(0xcd), expiresAt: later(300) }), later(200));
    chain.run(grant({ linkId: uuid(0xce) }), later(400));
    chain.run(append({ actorId: delegate }), later(500));
    expect(checkDecisions(chain.events)).toEqual([]);
  });

  test('in which the end of a grant is missing before a new grant', () => {
    const { events } = chainOf(...opened, grant(), revoke(), grant({ linkId: uuid(0xcd) }));
    expect(checkDecisions(events.filter(({ eventType }) => eventType !== 'MASTER_DELEGATION_REVOKED'))).toEqual([]);
  });
});

describe('an event that the service does not write is found', () => {
  const granted = [...opened, grant()];
  const revoked = [...granted, revoke()];
  const noAccess = 'payload.permissions.access must be "read" or "write"';
  const notWritten = (name: string) => `payload.${name} is not what the service writes here`;

  test.each<[string, Command[], Readonly<Record<string, unknown>>, string]>([
    ['a grant without a link', granted, { link_id: 7 }, 'payload.link_id must be a UUID'],
    ['a grant with a misspelt access', granted, { permissions: { access: 'wrote' } }, noAccess],
    ['a grant whose permissions are a list', granted, { permissions: [] }, 'payload.permissions must be an object'],
    ['a grant of another time', granted, { granted_at: later(1) }, "payload.granted_at is not the event's created_at"],
    ['a grant that ends at no time', granted, { expires_at: 'soon' }, 'payload.expires_at must be a time (RFC 3339)'],
    ['a grant that ends before it begins', granted, { expires_at: start }, 'its grant ends before it begins'],
    ['a grant that replaces none', granted, { replaces_link_id: uuid(1) }, notWritten('replaces_link_id')],
    ['a grant of another master', granted, { traceledger_master_id: siblingId }, notWritten('traceledger_master_id')],
    [
      'the end of a grant that is not there',
      revoked,
      { delegate_actor_id: stranger },
      'it ends a grant that was not in force',
    ],
    ['the end of another grant of the delegate', revoked, { link_id: uuid(1) }, notWritten('link_id')],
    ['a close of another ledger', [...opened, closeLedger()], { ledger_id: uuid(7) }, notWritten('ledger_id')],
    ['a close with more than belongs there', [...opened, closeMaster()], { note: 'x' }, notWritten('note')],
    ['a master with another buyer', opened, { buyer_actor_id: stranger }, notWritten('buyer_actor_id')],
    ['an order that another buyer opened', [openLedger()], { buyer_actor_id: stranger }, notWritten('buyer_actor_id')],
    [
      'an append in the name of another order',
      [...opened, append()],
      { business_ref: 'PO-2' },
      'payload.business_ref is not that of its ledger or master',
    ],
  ])('%s', (_, commands, change, detail) => {
    const found = checkDecisions(withPayload(chainOf(...commands).events, change));
    expect(found.map((one) => [one.type, one.detail])).toEqual([['contradiction', detail]]);
  });

  test('an opening type in the middle of a ledger, and a missing one at its start, are reported', () => {
    const chain = chainOf(...opened, append());
    for (const eventType of ['GENESIS', 'ORDER_OPENED', 'ORGANIZATION_REGISTERED'])
      expect([eventType, typesOf(withLast(chain.events, { eventType }))]).toEqual([eventType, [[3, 'contradiction']]]);
    expect(typesOf(withLast(chain.events.slice(0, 2), { eventType: 'CARGO_LOADED' }))).toEqual([[1, 'contradiction']]);
    expect(typesOf(withLast(chain.events.slice(0, 2), { actorId: stranger }))).toEqual([[1, 'not_permitted']]);
  });

  test('the names of members are cut in what is found', () => {
    const long = { ['x'.repeat(1_000_000)]: 0 };
    for (const commands of [[openLedger()], granted, [...opened, closeMaster()]]) {
      const chain = chainOf(...commands).events;
      const found = checkDecisions(withPayload(commands.length === 1 ? chain.slice(0, 1) : chain, long));
      expect(found.map(({ type }) => type)).toEqual(['contradiction']);
      expect(found[0]?.detail).toBe(`payload.${'x'.repeat(100)}… is not what the service writes here`);
    }
  });

  test('payloads without the form of their type never throw', () => {
    const whole = chainOf(...opened, append(), grant(), revoke(), closeMaster(), closeLedger()).events;
    for (const payload of ['{', '[]', 'null', '7', '{}', '{"permissions":null}', `${'['.repeat(50_000)}`]) {
      const broken = whole.map((event) => ({ ...event, payload }));
      expect(checkDecisions(broken).length).toBeGreaterThan(0);
      expect(checkDecisions(broken.slice(2)).length).toBeGreaterThanOrEqual(0);
    }
  });
});

test('a grant of an organization behind a close is found also where GENESIS is missing', () => {
  const organizationId = uuid(0x0f);
  const { events } = chainOf(
    openLedger({
      facts: openingFacts('FACILITY_ROOT', { primaryActorId: supplier, organizationId }),
      registeredPayload: `{"name":"Mill","organization_id":"${organizationId}","request_id":"${uuid(9)}"}`,
    }),
    grant({ scope: 'organization', requested: `{"delegate_actor_id":"${delegate}","role":"OPS"}` }),
    closeLedger({ actorId: supplier }),
  );
  const [, , granted, closed] = events;
  if (granted === undefined || closed === undefined) throw new Error('two events are missing');
  expect(typesOf([closed, { ...granted, seq: closed.seq + 1 }])).toEqual([[closed.seq + 1, 'closed']]);
});
