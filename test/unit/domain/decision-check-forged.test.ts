import { describe, expect, test } from 'vitest';
import type { Command } from '../../../src/domain/ledger/command.ts';
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
  revoke,
  siblingId,
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { checkDecisions, opened, typesOf, withLast, withPayload } from '../../support/decided-events.ts';
import { Chain, chainOf, start, startMs } from '../../support/world.ts';

const later = (ms: number) => isoTime(startMs + ms);

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

  test('events dated after now are reported, unless an earlier event is dated later still', () => {
    const chain = chainOf(...opened);
    chain.run(append(), later(10));
    chain.run(append(), '2099-01-01T00:00:00.000Z');
    chain.run(append(), '2098-01-01T00:00:00.000Z');
    expect(typesOf(chain.events, later(10_000))).toEqual([[4, 'dated_ahead']]);
    expect(typesOf(chain.events)).toEqual([]);
  });

  test('events of a master that has not begun, or of none, are contradictions', () => {
    const chain = chainOf(...opened, append());
    expect(typesOf(withLast(chain.events, { master: { id: siblingId, seq: 0, prevHash: '' } }))).toEqual([
      [3, 'contradiction'],
    ]);
    expect(typesOf(withLast(chain.events, { master: null }))).toEqual([[3, 'contradiction']]);
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
