import { describe, expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { delegatesMax } from '../../../src/domain/event/grant.ts';
import {
  applyToMaster,
  type MasterState,
  masterStateFrom,
  masterStateJson,
} from '../../../src/domain/ledger/master-state.ts';
import { isoTime } from '../../../src/domain/values/time.ts';
import { append, createMaster, delegate, grant, masterId, openLedger, revoke, uuid } from '../../support/commands.ts';
import { type Chain, chainOf, start, startMs } from '../../support/world.ts';

const msLater = (ms: number): string => isoTime(startMs + ms);
const numbered = (index: number, expiresAt: string | null) =>
  grant({ linkId: uuid(0x10_000 + index), delegateActorId: uuid(0x20_000 + index), expiresAt });

/**
 * A master with as many delegates as it takes; the one numbered n runs out n + 1 ms after the start, where `running`
 * says so.
 */
function full(running: (index: number) => boolean): Chain {
  const chain = chainOf(openLedger(), createMaster());
  for (let index = 0; index < delegatesMax; index += 1)
    chain.run(numbered(index, running(index) ? msLater(index + 1) : null));
  return chain;
}

function grantsOf(chain: Chain): MasterState['grants'] {
  const master = chain.masters.get(masterId);
  if (master === undefined) throw new Error('the master is gone');
  return master.grants;
}

describe('expired grants', () => {
  test('leave their places to new grants, the earliest end first, and no more are held in memory', () => {
    const chain = full(() => true);
    expect(chain.refusal(grant(), start)).toBe('invalid_argument');
    expect(chain.refusal(grant(), msLater(2))).toBe(null);
    expect(grantsOf(chain).size).toBe(delegatesMax);
    expect(grantsOf(chain).has(uuid(0x20_000))).toBe(false);
    expect(grantsOf(chain).has(uuid(0x20_001))).toBe(true);
    expect(chain.refusal(append({ actorId: delegate }), msLater(2))).toBe(null);
    expect(chain.refusal(append({ actorId: uuid(0x20_001) }), msLater(2))).toBe('access_expired');
    expect(chain.refusal(append({ actorId: uuid(0x20_002) }), msLater(2))).toBe(null);
  });

  test('free all thousand places, and not one more', () => {
    const chain = full(() => true);
    const hour = 3_600_000;
    for (let index = 0; index < delegatesMax; index += 1)
      chain.run(numbered(delegatesMax + index, null), msLater(hour));
    expect(grantsOf(chain).size).toBe(delegatesMax);
    expect(chain.refusal(grant(), msLater(hour))).toBe('invalid_argument');
    // A delegate that is there already is no further one.
    expect(chain.refusal(numbered(delegatesMax, null), msLater(hour))).toBe(null);
  });

  test('take a place again when they are granted anew', () => {
    const chain = full((index) => index === 0);
    chain.run(grant(), msLater(1));
    expect(chain.refusal(numbered(0, null), msLater(1))).toBe('invalid_argument');
    chain.run(revoke({ delegateActorId: uuid(0x20_001) }), msLater(1));
    expect(chain.refusal(numbered(0, null), msLater(1))).toBe(null);
  });

  test('are folded alike from the log and from any snapshot of it', () => {
    const chain = full((index) => index % 2 === 0);
    for (let index = 0; index < 20; index += 1) chain.run(numbered(delegatesMax + index, null), msLater(500 + index));
    const fold = (events: readonly LedgerEvent[], from: MasterState | null) =>
      events.reduce<MasterState | null>(applyToMaster, from);
    const own = chain.events.filter(({ master }) => master !== null);
    const whole = fold(own, null);
    expect(whole).toEqual(chain.masters.get(masterId));
    for (const count of [1, delegatesMax, delegatesMax + 1, delegatesMax + 5, own.length - 1]) {
      const state = fold(own.slice(0, count), null);
      if (state === null) throw new Error('nothing was folded');
      const read = fold(own.slice(count), masterStateFrom(masterStateJson(state)));
      expect(read).toEqual(whole);
      expect([...(read?.grants.keys() ?? [])]).toEqual([...(whole?.grants.keys() ?? [])]);
    }
  });
});
