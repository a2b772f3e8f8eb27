import { describe, expect, test } from 'vitest';
import { type Grant, grantAccess, holdsAt } from '../../../src/domain/event/grant.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import {
  type AccessLevel,
  demandAccess,
  grantAccessLevel,
  masterAccessLevel,
  strongerAccess,
} from '../../../src/domain/ledger/permission.ts';
import {
  append,
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
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { type Chain, chainOf, start } from '../../support/world.ts';

const later = '2026-11-21T03:00:00.000Z';

function held(from: Partial<Grant>): Grant {
  return {
    linkId: uuid(1),
    delegateActorId: delegate,
    role: 'OPS',
    permissions: '{}',
    access: 'write',
    grantedAt: start,
    expiresAt: null,
    grantedByActorId: supplier,
    eventId: uuid(2),
    ...from,
  };
}

describe('access of a grant', () => {
  test.each([
    ['OWNER', {}, 'write'],
    ['OPS', {}, 'write'],
    ['AGENT', {}, 'write'],
    ['FINANCE', {}, 'write'],
    ['AUDITOR', {}, 'read'],
    ['owner', {}, 'read'],
    ['ACCESS', {}, 'read'],
    ['AUDITOR', { access: 'write' }, 'write'],
    ['OWNER', { access: 'read' }, 'read'],
    ['OPS', { access: 'WRITE' }, 'read'],
    ['OPS', { access: null }, 'read'],
    ['OPS', { access: ['write'] }, 'read'],
    ['AUDITOR', { write: true, Access: 'write' }, 'read'],
    ['AUDITOR', JSON.parse('{"__proto__":{"access":"write"}}'), 'read'],
  ])('%s with %j may %s', (role, permissions, access) => {
    expect(grantAccess(role, permissions)).toBe(access);
  });

  test('a grant holds until the moment of its end', () => {
    expect(holdsAt(held({ expiresAt: later }), '2026-11-21T02:59:59.999Z')).toBe(true);
    expect(holdsAt(held({ expiresAt: later }), later)).toBe(false);
    expect(holdsAt(held({ expiresAt: null }), later)).toBe(true);
  });

  test('OWNER is more than a writer only at ledger scope with write access', () => {
    const owner = held({ role: 'OWNER' });
    expect(grantAccessLevel('ledger', owner, start)).toBe('owner');
    expect(grantAccessLevel('master', owner, start)).toBe('write');
    expect(grantAccessLevel('organization', owner, start)).toBe('write');
    expect(grantAccessLevel('ledger', held({ role: 'OWNER', access: 'read' }), start)).toBe('read');
  });

  test('one that ran out is expired, none is none', () => {
    expect(grantAccessLevel('ledger', held({ role: 'OWNER', expiresAt: start }), start)).toBe('expired');
    expect(grantAccessLevel('ledger', null, start)).toBe('none');
    expect(grantAccessLevel('ledger', undefined, start)).toBe('none');
  });
});

describe('what is demanded', () => {
  const levels: AccessLevel[] = ['none', 'expired', 'read', 'write', 'owner', 'party'];
  const codes = { none: 'not_found', expired: 'access_expired' } as Partial<Record<AccessLevel, string>>;

  test('the stronger of two levels counts, whatever their order', () => {
    for (const [weaker, a] of levels.entries()) {
      for (const b of levels.slice(weaker)) {
        expect(strongerAccess(a, b)).toBe(b);
        expect(strongerAccess(b, a)).toBe(b);
      }
    }
  });

  test.each(['read', 'write', 'owner', 'party'] as const)('%s', (needed) => {
    for (const level of levels) {
      const ask = () => demandAccess(level, needed, 'ledger');
      if (levels.indexOf(level) >= levels.indexOf(needed)) expect(ask).not.toThrow();
      else expect(ask).toThrow(expect.objectContaining({ code: codes[level] ?? 'permission_denied' }));
    }
  });
});

type Who = { readonly name: string; readonly chain: () => Chain; readonly actorId: string };

const order = () => chainOf(openLedger(), createMaster(), createMaster({ masterId: siblingId }));

function with_(command: Command): () => Chain {
  return () => {
    const chain = order();
    chain.run(command);
    return chain;
  };
}

const expiresAt = '2026-11-21T02:30:00.000Z';
const delegates: readonly Who[] = [
  { name: 'party', chain: order, actorId: supplier },
  { name: 'ledger OWNER', chain: with_(grant({ scope: 'ledger', role: 'OWNER' })), actorId: delegate },
  { name: 'ledger writer', chain: with_(grant({ scope: 'ledger', role: 'OPS' })), actorId: delegate },
  { name: 'ledger reader', chain: with_(grant({ scope: 'ledger', role: 'AUDITOR' })), actorId: delegate },
  { name: 'master writer', chain: with_(grant({ role: 'AUDITOR', access: 'write' })), actorId: delegate },
  { name: 'master OWNER', chain: with_(grant({ role: 'OWNER' })), actorId: delegate },
  { name: 'master reader', chain: with_(grant({ access: 'read' })), actorId: delegate },
  { name: 'sibling writer', chain: with_(grant({ masterId: siblingId })), actorId: delegate },
  { name: 'expired', chain: with_(grant({ access: 'write', expiresAt })), actorId: delegate },
  { name: 'stranger', chain: order, actorId: stranger },
];

const [denied, hidden, expired] = ['permission_denied', 'not_found', 'access_expired'];

/** What each may do, in the order of `delegates`; null: it is carried out. */
const table: readonly [string, (actorId: string) => Command, readonly (string | null)[]][] = [
  ['append', (actorId) => append({ actorId }), [null, null, null, denied, null, null, denied, hidden, expired, hidden]],
  [
    'create a master',
    (actorId) => createMaster({ actorId, masterId: uuid(0x77) }),
    [null, null, null, denied, hidden, hidden, hidden, hidden, hidden, hidden],
  ],
  [
    'close the master',
    (actorId) => closeMaster({ actorId }),
    [null, denied, denied, denied, denied, denied, denied, hidden, expired, hidden],
  ],
  [
    'close the ledger',
    (actorId) => closeLedger({ actorId }),
    [null, denied, denied, denied, hidden, hidden, hidden, hidden, hidden, hidden],
  ],
  [
    'grant on the master',
    (actorId) => grant({ actorId, delegateActorId: uuid(0x88), linkId: uuid(0x99) }),
    [null, null, denied, denied, denied, denied, denied, hidden, expired, hidden],
  ],
  [
    'grant on the ledger',
    (actorId) => grant({ actorId, scope: 'ledger', delegateActorId: uuid(0x88), linkId: uuid(0x99) }),
    [null, null, denied, denied, hidden, hidden, hidden, hidden, hidden, hidden],
  ],
];

describe('permission to', () => {
  test.each(table)('%s', (_, command, expected) => {
    for (const [index, { name, chain, actorId }] of delegates.entries()) {
      expect([name, chain().refusal(command(actorId), later)]).toEqual([name, expected[index]]);
    }
  });

  test('revoke is never held by a delegate of a master, not even for itself', () => {
    const chain = with_(grant())();
    expect(chain.refusal(revoke({ actorId: delegate }))).toBe('permission_denied');
  });

  test('revoke its own grant is held by a ledger OWNER', () => {
    const chain = with_(grant({ scope: 'ledger', role: 'OWNER' }))();
    expect(chain.refusal(revoke({ scope: 'ledger', actorId: delegate }))).toBe(null);
    expect(chain.refusal(append({ actorId: delegate }))).toBe('not_found');
  });

  test('write under a grant of an OWNER outlives the revocation of the OWNER', () => {
    const chain = with_(grant({ scope: 'ledger', role: 'OWNER' }))();
    chain.run(grant({ scope: 'ledger', actorId: delegate, delegateActorId: stranger, linkId: uuid(0xcd) }));
    chain.run(revoke({ scope: 'ledger' }));
    expect(chain.refusal(append({ actorId: delegate }))).toBe('not_found');
    expect(chain.refusal(append({ actorId: stranger }))).toBe(null);
  });

  test('grant is not held by an OWNER with read access', () => {
    const chain = with_(grant({ scope: 'ledger', role: 'OWNER', access: 'read' }))();
    const more = grant({ scope: 'ledger', role: 'OWNER', access: 'write', actorId: delegate });
    expect(chain.refusal(more)).toBe('permission_denied');
    expect(chain.refusal(append({ actorId: delegate }))).toBe('permission_denied');
  });

  test('read or write is the strongest that holds on the ledger or the master', () => {
    const chain = with_(grant({ access: 'write', expiresAt }))();
    chain.run(grant({ scope: 'ledger', role: 'AUDITOR', linkId: uuid(0xcd) }));
    const [master] = [chain.masters.get(masterId)];
    if (master === undefined) throw new Error('no master');
    expect(masterAccessLevel(chain.ledger, master, delegate, start)).toBe('write');
    expect(masterAccessLevel(chain.ledger, master, delegate, later)).toBe('read');
  });
});

describe('delegates of an organization', () => {
  const facts = openingFacts('FACILITY_ROOT', { primaryActorId: supplier, organizationId: uuid(0x50) });
  const root = (role: string) =>
    chainOf(
      openLedger({ facts, registeredPayload: '{}' }),
      createMaster(),
      grant({ scope: 'organization', role, masterId: null }),
    );

  test('create masters and append with write access, and neither grant nor close', () => {
    for (const role of ['OPS', 'OWNER']) {
      const chain = root(role);
      expect(chain.refusal(createMaster({ actorId: delegate, masterId: siblingId }))).toBe(null);
      expect(chain.refusal(append({ actorId: delegate }))).toBe(null);
      expect(chain.refusal(closeMaster({ actorId: delegate }))).toBe('permission_denied');
      expect(chain.refusal(closeLedger({ actorId: delegate }))).toBe('permission_denied');
      for (const scope of ['organization', 'ledger', 'master'] as const)
        expect(chain.refusal(grant({ scope, actorId: delegate, delegateActorId: stranger }))).toBe('permission_denied');
    }
  });

  test('only read without write access', () => {
    const chain = root('AUDITOR');
    expect(chain.refusal(append({ actorId: delegate }))).toBe('permission_denied');
    expect(chain.refusal(createMaster({ actorId: delegate, masterId: siblingId }))).toBe('permission_denied');
  });

  test('are not granted by a ledger OWNER of the root', () => {
    const chain = root('AUDITOR');
    chain.run(grant({ scope: 'ledger', role: 'OWNER' }));
    expect(chain.refusal(grant({ scope: 'organization', actorId: delegate, delegateActorId: stranger }))).toBe(
      'permission_denied',
    );
  });

  test('do not exist on a ledger without an organization', () => {
    expect(order().refusal(grant({ scope: 'organization' }))).toBe('not_found');
    expect(order().refusal(revoke({ scope: 'organization' }))).toBe('not_found');
  });
});
