import { describe, expect, test } from 'vitest';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { delegatesMax } from '../../../src/domain/event/grant.ts';
import { append, grant, revoke, uuid } from '../../support/commands.ts';
import { checkDecisions, opened, typesOf } from '../../support/decided-events.ts';
import { type Chain, chainOf, only } from '../../support/world.ts';

type Scope = 'ledger' | 'master';
const scopes: readonly Scope[] = ['ledger', 'master'];
const delegateOf = (index: number) => uuid(0x200_000 + index);
const linkOf = (index: number) => uuid(0x100_000 + index);
const numbered = (scope: Scope, index: number) =>
  grant({ scope, linkId: linkOf(index), delegateActorId: delegateOf(index), access: 'write' });
const another = (index: number) => ({ delegate_actor_id: delegateOf(index), link_id: linkOf(index) });

/** A ledger in which as many delegates as there may be hold a grant of this scope. */
function full(scope: Scope): Chain {
  const chain = chainOf(...opened);
  for (let index = 0; index < delegatesMax; index += 1) chain.run(numbered(scope, index));
  return chain;
}

/** The events, and the last one again with each of these changes of its payload. */
function withForged(chain: Chain, changes: readonly object[]): LedgerEvent[] {
  const last = only(chain.events.slice(-1));
  const payload = JSON.parse(last.payload) as object;
  const forged = changes.map((change, at) => ({
    ...last,
    seq: last.seq + 1 + at,
    master: last.master === null ? null : { ...last.master, seq: last.master.seq + 1 + at },
    payload: JSON.stringify({ ...payload, ...change }),
  }));
  return [...chain.events, ...forged];
}

/** An event that the actor appends behind these. */
function appendBehind(events: readonly LedgerEvent[], actorId: string): LedgerEvent {
  const event = only(chainOf(...opened).run(append()));
  const masterSeq = events.findLast(({ master }) => master !== null)?.master?.seq ?? -1;
  const master = event.master === null ? null : { ...event.master, seq: masterSeq + 1 };
  return { ...event, seq: events.length, master, actorId };
}

describe('a grant to one delegate more than there may be', () => {
  const forgeries = scopes.flatMap((scope) => [
    { scope, what: 'a new link', change: another(delegatesMax) },
    { scope, what: 'the link of another grant', change: { delegate_actor_id: delegateOf(delegatesMax) } },
  ]);
  test.each(forgeries)('of scope $scope with $what is a contradiction and allows nothing', ({ scope, change }) => {
    const forged = withForged(full(scope), [change]);
    const use = appendBehind(forged, delegateOf(delegatesMax));
    expect(typesOf([...forged, use])).toEqual([
      [forged.length - 1, 'contradiction'],
      [forged.length, 'not_permitted'],
    ]);
  });

  test.each(scopes)(
    'of scope %s is right where another grant was revoked, also if the revocation is missing',
    (scope) => {
      const chain = full(scope);
      chain.run(revoke({ scope, delegateActorId: delegateOf(7) }));
      chain.run(numbered(scope, delegatesMax));
      chain.run(append({ actorId: delegateOf(delegatesMax) }));
      expect(checkDecisions(chain.events)).toEqual([]);
      for (const gap of [1, chain.events.length - 3])
        expect(checkDecisions(chain.events.filter(({ seq }) => seq !== gap))).toEqual([]);
    },
  );
});

test.each(scopes)('twenty thousand forged grants of scope %s are decided within seconds', (scope) => {
  const changes = Array.from({ length: 20_000 }, (_, at) => another(delegatesMax + at));
  const forged = withForged(full(scope), changes);
  const begun = performance.now();
  expect(checkDecisions(forged)).toHaveLength(20_000);
  expect(performance.now() - begun).toBeLessThan(10_000);
});
