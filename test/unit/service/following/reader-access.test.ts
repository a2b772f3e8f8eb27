import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { LedgerFacts } from '../../../../src/domain/event/facts.ts';
import type { Grant } from '../../../../src/domain/event/grant.ts';
import { isoTime } from '../../../../src/domain/values/time.ts';
import { ReaderAccess } from '../../../../src/service/following/reader-access.ts';
import type { HeldGrant } from '../../../../src/service/reading/ledger-reading.ts';

const facts = {
  ledgerId: 'l',
  organizationId: null,
  buyerActorId: 'buyer',
  supplierActorId: 'supplier',
} as LedgerFacts;
const now = Date.parse('2026-11-26T00:00:00.000Z');
const grant = (expiresAt: string | null = null) => ({ role: 'AUDITOR', access: 'read', expiresAt }) as Grant;
const held = (scope: HeldGrant['scope'], id: string, version: number, given: Grant | null = grant()): HeldGrant => ({
  ...{ scope, id, version },
  grant: given,
});
const access = (grants: readonly HeldGrant[], masterId: string | null = null, actorId = 'delegate') =>
  new ReaderAccess(facts, actorId, masterId, grants, 10, now);
const change = (scope: HeldGrant['scope'], objectId: string, given: Grant | null) => ({
  ...{ scope, objectId, delegateActorId: 'delegate' },
  grant: given,
});
const of = (id: string | null) => ({ master: id === null ? null : { id, seq: 0, prevHash: '' } });

describe('the access of a follower', () => {
  test('of a party never ends', () => {
    const party = access([], null, 'buyer');
    party.learn(change('ledger', 'l', null), 11);
    expect([party.fault(now), party.mayEnd, party.faultFromMs]).toEqual([null, false, Number.POSITIVE_INFINITY]);
  });

  test('ends with the grant that it rests on, as the event behind the stored ones says', () => {
    const reader = access([held('ledger', 'l', 8)]);
    reader.learn(change('ledger', 'l', null), 10);
    expect(reader.fault(now)).toBeNull();
    reader.learn(change('ledger', 'l', null), 11);
    expect(reader.fault(now)?.code).toBe('permission_denied');
  });

  test('does not end by a revocation that is older than the grant that is stored', () => {
    const reader = access([held('ledger', 'l', 15)]);
    reader.learn(change('ledger', 'l', null), 12);
    expect(reader.fault(now)).toBeNull();
  });

  test('goes on while another grant gives the same', () => {
    const reader = access([held('ledger', 'l', 1), held('master', 'm', 2)], 'm');
    reader.learn(change('master', 'm', null), 11);
    expect(reader.fault(now)).toBeNull();
    reader.learn(change('ledger', 'l', null), 12);
    expect(reader.fault(now)?.code).toBe('permission_denied');
  });

  test('runs out at its time, unless a new grant has another one', () => {
    const reader = access([held('master', 'm', 1, grant(isoTime(now + 500)))], 'm');
    expect([reader.fault(now), reader.faultFromMs]).toEqual([null, now + 500]);
    expect(reader.fault(now + 500)?.code).toBe('access_expired');
    reader.learn(change('master', 'm', grant(isoTime(now + 900))), 11);
    expect([reader.fault(now + 500), reader.faultFromMs]).toEqual([null, now + 900]);
  });

  test('of single masters covers these and the ledger itself, and ends with any of them', () => {
    const reader = access([held('master', 'm', 1), held('master', 'gone', 2, null)]);
    expect([of(null), of('m'), of('gone'), of('other')].map((event) => reader.covers(event))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    reader.learn(change('master', 'other', grant()), 11);
    expect([reader.covers(of('other')), reader.scopes]).toEqual([true, ['own:l', 'master:m', 'master:other']]);
    reader.learn(change('master', 'm', null), 12);
    expect(reader.fault(now)?.code).toBe('permission_denied');
  });

  test('of one master covers no other event of the ledger', () => {
    const reader = access([held('ledger', 'l', 1)], 'm');
    expect([of(null), of('m'), of('other')].map((event) => reader.covers(event))).toEqual([false, true, false]);
  });

  test.each([
    ['a master that it may read', 'm17', grant(isoTime(now + 60_000))],
    ['a new master', 'new', grant()],
    ['the master whose grant was to expire first', 'm0', grant()],
  ])('of many masters examines nothing but what an event changes: %s', (_, changed, given) => {
    const known = (n: number) => held('master', `m${n}`, n % 10, grant(isoTime(now + 1_000 + n)));
    const reader = access(Array.from({ length: 1_000 }, (_unused, n) => known(n)));
    expect([reader.fault(now), reader.faultFromMs]).toEqual([null, now + 1_000]);
    const looks = (['values', 'keys', 'entries', 'forEach', Symbol.iterator] as const).map((way) =>
      vi.spyOn(Map.prototype, way),
    );
    onTestFinished(() => void vi.restoreAllMocks());
    const examined = () => looks.reduce((sum, look) => sum + look.mock.calls.length, 0);
    for (let seq = 11; seq < 111; seq += 1) {
      reader.learn(change('master', changed, given), seq);
      if (reader.fault(now) !== null) throw new Error('the access has ended');
    }
    const examinedByChanges = examined();
    const isCovered = reader.covers(of(changed));
    reader.learn(change('master', changed, null), 111);
    const code = reader.fault(now)?.code;
    const examinedInAll = examined();
    expect([isCovered, code, examinedByChanges, examinedInAll]).toEqual([true, 'permission_denied', 0, 0]);
    // What is looked for would be seen.
    expect(reader.scopes?.length).toBeGreaterThan(1_000);
    expect(examined()).toBeGreaterThan(0);
  });

  test('of many masters runs out with the first of its grants, and not before', () => {
    const reader = access([
      held('master', 'first', 1, grant(isoTime(now + 500))),
      held('master', 'second', 2, grant(isoTime(now + 700))),
      held('master', 'third', 3),
    ]);
    reader.learn(change('master', 'first', grant(isoTime(now + 900))), 11);
    expect([reader.fault(now + 699), reader.faultFromMs]).toEqual([null, now + 700]);
    reader.learn(change('master', 'third', grant(isoTime(now + 600))), 12);
    expect([reader.fault(now + 599), reader.fault(now + 600)?.code]).toEqual([null, 'access_expired']);
  });

  test('learns what is stored where that is newer', () => {
    const reader = access([held('ledger', 'l', 5)]);
    reader.learnStored([held('ledger', 'l', 4, null)]);
    expect(reader.fault(now)).toBeNull();
    reader.learnStored([held('ledger', 'l', 9, null)]);
    expect(reader.fault(now)?.code).toBe('permission_denied');
  });
});
