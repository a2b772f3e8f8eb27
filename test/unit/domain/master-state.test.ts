import { describe, expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import {
  applyToMaster,
  type MasterState,
  masterStateFrom,
  masterStateJson,
  nextMasterLink,
} from '../../../src/domain/ledger/master-state.ts';
import {
  append,
  closeMaster,
  createMaster,
  delegate,
  grant,
  masterId,
  openLedger,
  revoke,
  siblingId,
  stranger,
  uuid,
} from '../../support/commands.ts';
import { chainOf, start } from '../../support/world.ts';

const chain = chainOf(
  openLedger(),
  createMaster(),
  createMaster({ masterId: siblingId }),
  append(),
  grant({ access: 'read', expiresAt: '2030-01-01T00:00:00.000Z' }),
  append({ masterId: siblingId }),
  grant({ delegateActorId: stranger, linkId: uuid(1) }),
  revoke(),
  closeMaster(),
  revoke({ delegateActorId: stranger }),
);
const own = chain.events.filter(({ master }) => master?.id === masterId);

function fold(events: readonly LedgerEvent[], from: MasterState | null = null): MasterState {
  const state = events.reduce<MasterState | null>(applyToMaster, from);
  if (state === null) throw new Error('nothing was folded');
  return state;
}

describe('the fold of a master', () => {
  test('numbers and links its events without a gap, whatever stands between them in the ledger', () => {
    let state: MasterState | null = null;
    for (const [index, event] of own.entries()) {
      expect(event.master).toEqual(nextMasterLink(state, masterId));
      expect(event.master?.seq).toBe(index);
      state = applyToMaster(state, event);
      expect(state).toMatchObject({ masterSeq: index, contentHash: event.contentHash, seq: event.seq });
    }
    expect(own).toHaveLength(7);
    expect(own.map(({ seq }) => seq)).not.toEqual(own.map((_, index) => index + (own[0]?.seq ?? 0)));
  });

  test('drops revoked grants and keeps the others after a close', () => {
    expect([...fold(own.slice(0, 4)).grants.keys()]).toEqual([delegate, stranger]);
    expect([...fold(own.slice(0, 5)).grants.keys()]).toEqual([stranger]);
    expect(fold(own.slice(0, 6))).toMatchObject({ closed: true });
    expect([...fold(own.slice(0, 6)).grants.keys()]).toEqual([stranger]);
    expect(fold(own).grants.size).toBe(0);
  });

  test('keeps of a grant what decisions need, and not its permissions, which may be large', () => {
    const permissions = '{"note":"large","access":"write"}';
    const marked = chainOf(openLedger(), createMaster(), grant({ permissions })).masters.get(masterId);
    if (marked === undefined) throw new Error('the master is gone');
    const [held, ...others] = marked.grants.values();
    expect(others).toEqual([]);
    const kept = { delegateActorId: delegate, role: 'OPS', linkId: uuid(0xcc), grantedAt: start, expiresAt: null };
    expect(held).toEqual({ ...kept, access: 'write' });
    expect(masterStateJson(marked)).not.toContain('large');
  });

  test('is the same after a round trip through a snapshot, and so is every later state', () => {
    for (let count = 1; count <= own.length; count++) {
      const read = masterStateFrom(masterStateJson(fold(own.slice(0, count))));
      expect(read).toEqual(fold(own.slice(0, count)));
      if (count < own.length) expect(fold(own.slice(count), read)).toEqual(fold(own));
    }
  });
});
