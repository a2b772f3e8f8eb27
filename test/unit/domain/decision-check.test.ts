import { describe, expect, test } from 'vitest';
import { eventHash } from '../../../src/domain/event/content.ts';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { sha256Hex } from '../../../src/domain/keys/hash.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { checkDecisions } from '../../../src/domain/ledger/decision-check.ts';
import type { DecisionIssueType } from '../../../src/domain/ledger/decision-fault.ts';
import type { MasterState } from '../../../src/domain/ledger/master-state.ts';
import { isoTime } from '../../../src/domain/values/time.ts';
import {
  append,
  buyer,
  closeLedger,
  closeMaster,
  createMaster,
  delegate,
  grant,
  masterId,
  openingFacts,
  openLedger,
  revoke,
  siblingId,
  signature,
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { Chain, chainOf, start, startMs } from '../../support/world.ts';

const later = (ms: number) => isoTime(startMs + ms);
const typesOf = (events: readonly LedgerEvent[], latest?: string) =>
  checkDecisions(events, { latest }).map(({ seq, type }): [number, DecisionIssueType] => [seq, type]);

/**
 * A chain that goes on as one whose state a forger changed: commands are decided in `state`, and the log says nothing
 * of it.
 */
class ForgedChain extends Chain {
  /** Runs the command as if the ledger, and the master if one is given, were in another state. */
  runIn(
    command: Command,
    ledger: Partial<Chain['ledger']>,
    master: Partial<MasterState> = {},
    at: string = start,
  ): void {
    const real = this.ledger;
    const id = 'masterId' in command ? (command.masterId ?? '') : '';
    const realMaster = this.masters.get(id);
    this.ledger = { ...real, ...ledger };
    if (realMaster !== undefined) this.masters.set(id, { ...realMaster, ...master });
    this.run(command, at);
    const { seq, hash, createdAt } = this.ledger;
    this.ledger = { ...real, seq, hash, createdAt };
    const now = this.masters.get(id);
    if (realMaster === undefined || now === undefined) return;
    const own = { ...now };
    for (const name of Object.keys(master) as (keyof MasterState)[]) Object.assign(own, { [name]: realMaster[name] });
    this.masters.set(id, own);
  }
}

function forged(...commands: readonly Command[]): ForgedChain {
  const chain = new ForgedChain();
  for (const command of commands) chain.run(command);
  return chain;
}

/** The last event with another content, hashed anew. */
function withLast(events: readonly LedgerEvent[], change: Partial<LedgerEvent>): LedgerEvent[] {
  const last = events.at(-1);
  if (last === undefined) throw new Error('there is no event');
  const changed = { ...last, ...change };
  const contentHash = sha256Hex(JSON.stringify(changed));
  return [...events.slice(0, -1), { ...changed, contentHash, hash: eventHash(changed.prevHash, contentHash) }];
}

function withPayload(events: readonly LedgerEvent[], change: Readonly<Record<string, unknown>>): LedgerEvent[] {
  const payload = { ...JSON.parse(events.at(-1)?.payload ?? '{}'), ...change };
  const sorted = Object.fromEntries(Object.entries(payload).sort(([a], [b]) => (a < b ? -1 : 1)));
  return withLast(events, { payload: JSON.stringify(sorted) });
}

const opened = [openLedger(), createMaster()];
const strangersGrant = {
  linkId: uuid(1),
  delegateActorId: stranger,
  role: 'OPS',
  permissions: '{}',
  access: 'write' as const,
  grantedAt: start,
  expiresAt: null,
  grantedByActorId: supplier,
  eventId: uuid(2),
};

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
        grant({ scope: 'ledger', role: 'OWNER', delegateActorId: stranger }),
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
        grant({ scope: 'ledger', role: 'OWNER', delegateActorId: stranger }),
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
    expect(checkDecisions(chainOf(...commands).events, { latest: start })).toEqual([]);
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
});

describe('what a changed snapshot lets through is found', () => {
  test('an append under a grant that the log does not contain is not_permitted', () => {
    const chain = forged(...opened);
    chain.runIn(append({ actorId: stranger }), {}, { grants: new Map([[stranger, strangersGrant]]) });
    chain.run(append());
    expect(checkDecisions(chain.events)).toEqual([
      {
        eventId: chain.events[3]?.id,
        seq: 3,
        type: 'not_permitted',
        detail: `actor ${stranger} was no party and held no grant at ${start}`,
      },
    ]);
  });

  test('a grant by a stranger is not_permitted, and so are the appends under it', () => {
    const chain = forged(...opened);
    const owner = { ...strangersGrant, role: 'OWNER' };
    chain.runIn(grant({ actorId: stranger }), { ledgerGrants: new Map([[stranger, owner]]) });
    chain.run(append({ actorId: delegate }));
    expect(typesOf(chain.events)).toEqual([
      [3, 'not_permitted'],
      [4, 'not_permitted'],
    ]);
  });

  test('a revocation by a stranger is not_permitted and ends no grant', () => {
    const chain = forged(...opened, grant({ access: 'write' }));
    const owner = { ...strangersGrant, role: 'OWNER' };
    chain.runIn(revoke({ actorId: stranger }), { ledgerGrants: new Map([[stranger, owner]]) });
    const held = chain.masters.get(masterId);
    if (held)
      chain.masters.set(masterId, {
        ...held,
        grants: new Map([[delegate, { ...strangersGrant, delegateActorId: delegate }]]),
      });
    chain.run(append({ actorId: delegate }));
    expect(typesOf(chain.events)).toEqual([[4, 'not_permitted']]);
  });

  test('appends of a reader, closings by a writer and uses of an ended grant are not_permitted', () => {
    const chain = forged(...opened, grant({ access: 'read' }));
    chain.runIn(append({ actorId: delegate }), {}, { grants: new Map([[delegate, strangersGrant]]) });
    chain.run(grant({ access: 'write', expiresAt: later(10), linkId: uuid(0xcd) }));
    const forGood = { ...strangersGrant, delegateActorId: delegate };
    const facts = {
      ...openingFacts('ORDER', { buyerActorId: buyer, supplierActorId: delegate }),
      ...{ ledgerId: uuid(1), createdAt: start, genesisHash: '' },
    };
    chain.runIn(closeMaster({ actorId: delegate }), { facts });
    const closed = chain.masters.get(masterId);
    if (closed) chain.masters.set(masterId, { ...closed, closed: false });
    chain.runIn(append({ actorId: delegate }), {}, { grants: new Map([[delegate, forGood]]) }, later(10));
    chain.run(revoke(), later(11));
    chain.runIn(append({ actorId: delegate }), {}, { grants: new Map([[delegate, forGood]]) }, later(12));
    expect(typesOf(chain.events)).toEqual([4, 6, 7, 9].map((seq) => [seq, 'not_permitted']));
  });

  test('events behind the close of a ledger or master are reported as closed', () => {
    const chain = forged(...opened, closeMaster());
    chain.runIn(append(), {}, { closed: false });
    chain.run(closeLedger());
    chain.runIn(createMaster({ masterId: siblingId }), { closed: false });
    chain.runIn(append({ masterId: siblingId }), { closed: false });
    chain.runIn(grant({ scope: 'ledger' }), { closed: false });
    chain.runIn(closeLedger(), { closed: false });
    expect(typesOf(chain.events)).toEqual([4, 6, 7, 8, 9].map((seq) => [seq, 'closed']));
  });

  test('events dated before an earlier event or after now are reported', () => {
    const chain = chainOf(...opened);
    chain.run(append(), later(10));
    chain.run(append(), later(9));
    chain.run(append(), '2099-01-01T00:00:00.000Z');
    expect(typesOf(chain.events, later(10_000))).toEqual([
      [4, 'dated_backwards'],
      [5, 'dated_ahead'],
    ]);
    expect(typesOf(chain.events)).toEqual([[4, 'dated_backwards']]);
    expect(typesOf(withLast(chain.events.slice(0, 4), { createdAt: '2099' }))).toEqual([[3, 'contradiction']]);
  });

  test('wrong numbers and links of a master are reported', () => {
    const chain = chainOf(...opened, append());
    const link = { id: masterId, seq: 2, prevHash: chain.events[2]?.contentHash ?? '' };
    expect(typesOf(withLast(chain.events, { master: link }))).toEqual([[3, 'broken_link']]);
    expect(typesOf(withLast(chain.events, { master: { ...link, seq: 1, prevHash: 'b'.repeat(64) } }))).toEqual([
      [3, 'broken_link'],
    ]);
    expect(typesOf(withLast(chain.events, { prevHash: 'b'.repeat(64) }))).toEqual([[3, 'broken_link']]);
    expect(typesOf(withLast(chain.events, { master: { id: siblingId, seq: 0, prevHash: '' } }))).toEqual([
      [3, 'contradiction'],
    ]);
    expect(typesOf(withLast(chain.events, { master: null }))).toEqual([[3, 'contradiction']]);
  });
});

describe('an event that the service does not write is found', () => {
  test.each<[string, Command[], Readonly<Record<string, unknown>>, string]>([
    [
      'a grant without a link',
      [...opened, grant()],
      { link_id: 7 },
      'payload.link_id and payload.delegate_actor_id must be UUIDs',
    ],
    [
      'a grant with a misspelt access',
      [...opened, grant()],
      { permissions: { access: 'wrote' } },
      'payload.permissions.access must be "read" or "write"',
    ],
    [
      'a grant whose permissions are a list',
      [...opened, grant()],
      { permissions: [] },
      'payload.permissions must be an object',
    ],
    [
      'a grant of another time',
      [...opened, grant()],
      { granted_at: later(1) },
      "payload.granted_at is not the event's created_at",
    ],
    [
      'a grant that ends at no time',
      [...opened, grant()],
      { expires_at: 'soon' },
      'payload.expires_at must be a time (RFC 3339)',
    ],
    [
      'a grant that ends before it begins',
      [...opened, grant()],
      { expires_at: start },
      'its grant ends before it begins',
    ],
    [
      'a grant that names a grant before it where there is none',
      [...opened, grant()],
      { replaces_link_id: uuid(1) },
      'payload.replaces_link_id is not what the service writes here',
    ],
    [
      'a grant of another master',
      [...opened, grant()],
      { traceledger_master_id: siblingId },
      'payload.traceledger_master_id is not what the service writes here',
    ],
    [
      'the end of a grant that is not there',
      [...opened, grant(), revoke()],
      { delegate_actor_id: stranger },
      'it ends a grant that was not in force',
    ],
    [
      'the end of another grant of the delegate',
      [...opened, grant(), revoke()],
      { link_id: uuid(1) },
      'payload.link_id is not what the service writes here',
    ],
    [
      'a close of another ledger',
      [...opened, closeLedger()],
      { ledger_id: uuid(7) },
      'payload.ledger_id is not what the service writes here',
    ],
    [
      'a close with more than belongs there',
      [...opened, closeMaster()],
      { note: 'x' },
      'payload.note is not what the service writes here',
    ],
    [
      'a master with another buyer',
      opened,
      { buyer_actor_id: stranger },
      'payload.buyer_actor_id is not what the service writes here',
    ],
    [
      'an order that another buyer opened',
      [openLedger()],
      { buyer_actor_id: stranger },
      'payload.buyer_actor_id is not what the service writes here',
    ],
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

  test('payloads without the form of their type never throw', () => {
    const whole = chainOf(...opened, append(), grant(), revoke(), closeMaster(), closeLedger()).events;
    for (const payload of ['{', '[]', 'null', '7', '{}', '{"permissions":null}', `${'['.repeat(50_000)}`]) {
      const broken = whole.map((event) => ({ ...event, payload }));
      expect(checkDecisions(broken).length).toBeGreaterThan(0);
      expect(checkDecisions(broken.slice(2)).length).toBeGreaterThanOrEqual(0);
    }
  });
});

describe('an incomplete list', () => {
  const chain = forged(
    ...opened,
    createMaster({ masterId: siblingId }),
    grant({ access: 'write' }),
    append({ actorId: delegate }),
    closeMaster(),
  );
  chain.runIn(append({ actorId: stranger }), {}, { closed: false, grants: new Map([[stranger, strangersGrant]]) });
  chain.run(closeLedger());
  chain.runIn(append({ masterId: siblingId }), { closed: false });
  chain.run(revoke());
  const { events } = chain;

  test('a whole ledger shows missing rights and closes', () => {
    expect(typesOf(events)).toEqual([
      [7, 'not_permitted'],
      [9, 'closed'],
    ]);
  });

  test('the list of one master shows events behind its close', () => {
    const own = events.filter(({ master }) => master?.id === masterId);
    expect(typesOf(own)).toEqual([[7, 'closed']]);
    expect(typesOf(own.slice(2))).toEqual([[7, 'closed']]);
    const swapped = withPayload(own, { link_id: uuid(1) });
    expect(typesOf(swapped)).toEqual([
      [7, 'closed'],
      [10, 'contradiction'],
    ]);
    expect(typesOf(swapped.slice(2))).toEqual([[7, 'closed']]);
  });

  test('a segment shows events behind the close of the ledger, and reports no missing right', () => {
    expect(typesOf([...events.slice(0, 2), ...events.slice(5)])).toEqual([
      [7, 'closed'],
      [9, 'closed'],
    ]);
    expect(typesOf(events.slice(7, 8))).toEqual([]);
    expect(typesOf([...events.slice(0, 4), ...events.slice(5, 6)])).toEqual([]);
  });
});
