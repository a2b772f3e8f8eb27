import { describe, expect, test } from 'vitest';
import { delegatesMax, type Grant } from '../../../src/domain/event/grant.ts';
import { decide } from '../../../src/domain/ledger/decide.ts';
import {
  append,
  closeLedger,
  closeMaster,
  createMaster,
  delegate,
  grant,
  masterId,
  openLedger,
  revoke,
  signature,
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { Chain, chainOf, only, start } from '../../support/world.ts';

const soon = '2026-11-21T02:06:39.101Z';
const expiresAt = '2026-11-21T02:30:00.000Z';

const open = () => chainOf(openLedger(), createMaster());
const closed = () => chainOf(openLedger(), createMaster(), grant(), closeLedger());

describe('a ledger begins once', () => {
  test('every command on a ledger that is not open is refused as not_found', () => {
    for (const command of [createMaster(), append(), closeMaster(), closeLedger(), grant(), revoke()])
      expect(new Chain().refusal(command)).toBe('not_found');
  });

  test('a second opening is refused as already_exists and writes nothing', () => {
    const chain = open();
    const count = chain.events.length;
    expect(chain.refusal(openLedger())).toBe('already_exists');
    expect(chain.refusal(openLedger({ actorId: stranger }))).toBe('already_exists');
    expect(chain.events).toHaveLength(count);
  });

  test('command keys and signature of its opener are not those of its events', () => {
    const [genesis, opened] = chainOf(
      openLedger({ commandKeys: [{ id: 'k', fingerprint: 'f', permanent: false }] }),
    ).events;
    expect([genesis?.commands, opened?.commands]).toEqual([[], []]);
  });
});

describe('permission is checked before state', () => {
  test('on a closed ledger a stranger gets not_found and a reader gets permission_denied', () => {
    const chain = closed();
    for (const actorId of [stranger]) {
      expect(chain.refusal(append({ actorId }))).toBe('not_found');
      expect(chain.refusal(closeLedger({ actorId }))).toBe('not_found');
      expect(chain.refusal(createMaster({ actorId }))).toBe('not_found');
      expect(chain.refusal(grant({ actorId, scope: 'ledger' }))).toBe('not_found');
    }
    const reader = chainOf(openLedger(), createMaster(), grant({ access: 'read' }), closeLedger());
    expect(reader.refusal(append({ actorId: delegate }))).toBe('permission_denied');
    expect(reader.refusal(append({ actorId: supplier }))).toBe('ledger_closed');
  });

  test('on a closed master a stranger gets not_found, even for a grant in the past', () => {
    const chain = chainOf(openLedger(), createMaster(), closeMaster());
    expect(chain.refusal(append({ actorId: stranger }))).toBe('not_found');
    expect(chain.refusal(closeMaster({ actorId: stranger }))).toBe('not_found');
    expect(chain.refusal(grant({ actorId: stranger, expiresAt: start }))).toBe('not_found');
    expect(chain.refusal(revoke({ actorId: stranger }))).toBe('not_found');
  });

  test('a missing master and an invisible master get the same answer', () => {
    const texts = [uuid(0x999), masterId].map((id) => {
      try {
        open().run(append({ masterId: id, actorId: stranger }));
        return 'carried out';
      } catch (error) {
        return String(error);
      }
    });
    expect(new Set(texts).size).toBe(1);
  });
});

describe('after closing', () => {
  test('a ledger accepts revocations only, each of them once', () => {
    const chain = closed();
    expect(chain.refusal(append())).toBe('ledger_closed');
    expect(chain.refusal(createMaster({ masterId: uuid(7) }))).toBe('ledger_closed');
    expect(chain.refusal(closeMaster())).toBe('ledger_closed');
    expect(chain.refusal(closeLedger())).toBe('ledger_closed');
    expect(chain.refusal(grant())).toBe('ledger_closed');
    expect(chain.refusal(grant({ scope: 'ledger' }))).toBe('ledger_closed');
    expect(chain.refusal(revoke())).toBe(null);
    expect(chain.refusal(revoke())).toBe('not_found');
  });

  test('a master accepts revocations only, and its sibling accepts everything', () => {
    const chain = chainOf(openLedger(), createMaster(), createMaster({ masterId: uuid(7) }), grant(), closeMaster());
    expect(chain.refusal(append())).toBe('master_closed');
    expect(chain.refusal(grant())).toBe('master_closed');
    expect(chain.refusal(closeMaster())).toBe('master_closed');
    expect(chain.refusal(revoke())).toBe(null);
    expect(chain.refusal(append({ masterId: uuid(7) }))).toBe(null);
    expect(chain.refusal(grant({ scope: 'ledger' }))).toBe(null);
  });

  test('ledger_closed takes precedence over master_closed', () => {
    const chain = chainOf(openLedger(), createMaster(), closeMaster(), closeLedger());
    expect(chain.refusal(append())).toBe('ledger_closed');
  });
});

describe('grants in time', () => {
  test('a grant holds until the millisecond of its end', () => {
    const chain = open();
    chain.run(grant({ access: 'write', expiresAt }));
    expect(chain.refusal(append({ actorId: delegate }), '2026-11-21T02:29:59.999Z')).toBe(null);
    expect(chain.refusal(append({ actorId: delegate }), expiresAt)).toBe('access_expired');
  });

  test('a grant that ends at or before its own time is refused', () => {
    expect(open().refusal(grant({ access: 'write', expiresAt: start }), start)).toBe('invalid_argument');
    expect(open().refusal(grant({ access: 'write', expiresAt: start }), soon)).toBe('invalid_argument');
    expect(open().refusal(grant({ access: 'write', expiresAt: soon }), start)).toBe(null);
  });

  test('an expired grant is named by the grant that replaces it, and may be revoked', () => {
    const chain = open();
    chain.run(grant({ access: 'write', expiresAt: soon }));
    const again = only(chain.run(grant({ linkId: uuid(0xcd) }), expiresAt));
    expect(JSON.parse(again.payload)).toMatchObject({ replaces_link_id: uuid(0xcc), granted_at: expiresAt });
    expect(chain.refusal(append({ actorId: delegate }), expiresAt)).toBe(null);
    const other = open();
    other.run(grant({ access: 'write', expiresAt: soon }));
    expect(other.refusal(revoke(), expiresAt)).toBe(null);
  });

  test('only the newest grant counts, whichever gives more', () => {
    const chain = open();
    chain.run(grant({ access: 'write' }));
    chain.run(grant({ access: 'read', linkId: uuid(0xcd) }));
    expect(chain.refusal(append({ actorId: delegate }))).toBe('permission_denied');
    chain.run(grant({ access: 'write', linkId: uuid(0xce) }));
    expect(chain.refusal(append({ actorId: delegate }))).toBe(null);
  });

  test('a revocation by link ends that link only', () => {
    const chain = open();
    chain.run(grant());
    chain.run(grant({ delegateActorId: stranger, linkId: uuid(0xcd) }));
    const byLink = (linkId: string) => revoke({ delegateActorId: null, linkId });
    expect(chain.refusal(byLink(uuid(0xdead)))).toBe('not_found');
    expect(JSON.parse(only(chain.run(byLink(uuid(0xcd)))).payload)).toMatchObject({ delegate_actor_id: stranger });
    expect(chain.refusal(append({ actorId: stranger }))).toBe('not_found');
    expect(chain.refusal(append({ actorId: delegate }))).toBe(null);
    expect(chain.refusal(byLink(uuid(0xcd)))).toBe('not_found');
  });

  test('a replaced link cannot be revoked', () => {
    const chain = chainOf(openLedger(), createMaster(), grant(), grant({ linkId: uuid(0xcd) }));
    expect(chain.refusal(revoke({ delegateActorId: null, linkId: uuid(0xcc) }))).toBe('not_found');
    expect(chain.refusal(append({ actorId: delegate }))).toBe(null);
  });
});

describe('the number of delegates is bounded', () => {
  const chain = open();
  const full: Grant[] = Array.from({ length: delegatesMax }, (_, index) => ({
    linkId: uuid(0x10_000 + index),
    delegateActorId: uuid(0x20_000 + index),
    role: 'AUDITOR',
    permissions: '{}',
    access: 'read',
    grantedAt: start,
    expiresAt: null,
    grantedByActorId: supplier,
    eventId: uuid(1),
  }));
  const grants = new Map(full.map((held) => [held.delegateActorId, held]));
  const ledger = { ...chain.ledger, ledgerGrants: grants };

  test('one delegate more is refused, a changed grant of a present delegate is not', () => {
    expect(() => decide(ledger, null, grant({ scope: 'ledger' }), start)).toThrow(
      expect.objectContaining({ code: 'invalid_argument', details: { limit: delegatesMax } }),
    );
    expect(decide(ledger, null, grant({ scope: 'ledger', delegateActorId: uuid(0x20_000) }), start)).toHaveLength(1);
  });
});

describe('what a draft carries', () => {
  test('the draft of an append carries the event and its cause unchanged', () => {
    const chain = open();
    const causedByHash = 'ab'.repeat(32);
    const [draft] = decide(
      chain.ledger,
      chain.masters.get(masterId) ?? null,
      append({ eventType: 'X', payload: '{"a":1}', causedByHash, actorType: 'device' }),
      start,
    );
    expect(draft).toMatchObject({ eventType: 'X', payload: '{"a":1}', causedByHash, actorType: 'device', masterId });
  });

  test('the signed form is stored only where it differs from the payload', () => {
    const chain = open();
    const payload = '{"a":1,"delivery_chain":[]}';
    const asPayload = only(chain.run(append({ payload, signature: signature('kid', payload) })));
    const other = only(chain.run(append({ payload, signature: signature('kid', '{"a":1}') })));
    expect([asPayload.actorSigPayload, other.actorSigPayload]).toEqual([null, '{"a":1}']);
    expect([asPayload.actorSigPayloadHash, asPayload.authoritySig]).toEqual([null, null]);
  });

  test('the same state, command and time give the same drafts', () => {
    const chain = open();
    const master = chain.masters.get(masterId) ?? null;
    for (const command of [append(), grant(), closeMaster(), closeLedger()])
      expect(decide(chain.ledger, master, command, start)).toEqual(decide(chain.ledger, master, command, start));
  });

  test('a refusal changes no state', () => {
    const chain = closed();
    const before = chain.ledger;
    expect(chain.refusal(append())).toBe('ledger_closed');
    expect(chain.ledger).toBe(before);
  });
});
