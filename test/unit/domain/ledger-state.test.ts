import { describe, expect, test } from 'vitest';
import {
  applyToLedger,
  emptyLedger,
  type LedgerState,
  ledgerStateFrom,
  ledgerStateJson,
} from '../../../src/domain/ledger/ledger-state.ts';
import {
  append,
  closeLedger,
  createMaster,
  delegate,
  grant,
  openingFacts,
  openLedger,
  revoke,
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { chainOf, start } from '../../support/world.ts';

const root = openingFacts('FACILITY_ROOT', { primaryActorId: supplier, organizationId: uuid(0x50) });

const chain = chainOf(
  openLedger({ facts: root, registeredPayload: '{"legal_name":"Äcme \\u2028"}' }),
  createMaster(),
  grant({ scope: 'ledger', role: 'OWNER' }),
  grant({ scope: 'ledger', role: 'AUDITOR', delegateActorId: stranger, linkId: uuid(1) }),
  grant({ scope: 'organization', delegateActorId: stranger, linkId: uuid(2), access: 'read' }),
  grant({ scope: 'master', linkId: uuid(3) }),
  grant({ scope: 'ledger', role: 'FINANCE', linkId: uuid(4) }),
  append(),
  revoke({ scope: 'ledger', delegateActorId: stranger }),
  closeLedger(),
  revoke({ scope: 'organization', delegateActorId: stranger }),
);

function foldOf(count: number): LedgerState {
  return chain.events.slice(0, count).reduce(applyToLedger, emptyLedger);
}

describe('the fold of a ledger', () => {
  test('keeps the seq, hash and time of the newest event', () => {
    for (const [index, event] of chain.events.entries()) {
      expect(foldOf(index + 1)).toMatchObject({ seq: event.seq, hash: event.hash, createdAt: event.createdAt });
    }
  });

  test('a grant replaces the earlier one, and a grant of a master is not in the state of the ledger', () => {
    expect([...foldOf(6).ledgerGrants.keys()]).toEqual([delegate, stranger]);
    expect(foldOf(8).ledgerGrants.get(delegate)).toMatchObject({ linkId: uuid(4), role: 'FINANCE' });
    expect(foldOf(8).ledgerGrants.size).toBe(2);
  });

  test('keeps of a grant what decisions need, and not its permissions, which may be large', () => {
    const marked = chainOf(
      openLedger({ facts: root }),
      grant({ scope: 'ledger', permissions: '{"note":"large","access":"write"}' }),
      grant({ scope: 'organization', permissions: '{"note":"large","access":"read"}' }),
    );
    const kept = { delegateActorId: delegate, role: 'OPS', linkId: uuid(0xcc), grantedAt: start, expiresAt: null };
    expect([...marked.ledger.ledgerGrants.values()]).toEqual([{ ...kept, access: 'write' }]);
    expect([...marked.ledger.organizationGrants.values()]).toEqual([{ ...kept, access: 'read' }]);
    expect(ledgerStateJson(marked.ledger)).not.toContain('large');
  });

  test('ends a grant by a revocation of the same scope only', () => {
    const after = foldOf(10);
    expect([...after.ledgerGrants.keys()]).toEqual([delegate]);
    expect([...after.organizationGrants.keys()]).toEqual([stranger]);
    expect(foldOf(12).organizationGrants.size).toBe(0);
  });

  test('stays closed after a close', () => {
    expect(foldOf(10).closed).toBe(false);
    expect(foldOf(11).closed).toBe(true);
    expect(foldOf(12).closed).toBe(true);
  });

  test('ignores the payload of business events', () => {
    const before = foldOf(6);
    const [genesis] = chain.events;
    if (genesis === undefined) throw new Error('no genesis');
    const loud = { ...genesis, eventType: 'NOTE', seq: 6, payload: genesis.payload };
    expect(applyToLedger(before, loud)).toEqual({ ...before, seq: 6, hash: loud.hash });
    const second = { ...loud, eventType: 'GENESIS', payload: '{"ledger_type":"ORDER"}' };
    expect(applyToLedger(before, second).facts).toEqual(before.facts);
  });

  test('changes no earlier state', () => {
    const before = foldOf(4);
    const text = ledgerStateJson(before);
    chain.events.slice(4).reduce(applyToLedger, before);
    expect(ledgerStateJson(before)).toBe(text);
  });

  test('is the same after a round trip through a snapshot, and so is every later state', () => {
    expect(ledgerStateFrom(ledgerStateJson(emptyLedger))).toEqual(emptyLedger);
    for (let count = 1; count <= chain.events.length; count++) {
      const read = ledgerStateFrom(ledgerStateJson(foldOf(count)));
      expect(read).toEqual(foldOf(count));
      expect(chain.events.slice(count).reduce(applyToLedger, read)).toEqual(chain.ledger);
    }
  });
});
