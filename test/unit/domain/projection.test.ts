import { describe, expect, test } from 'vitest';
import { ledgerFacts } from '../../../src/domain/event/facts.ts';
import { ledgerOrder, names, type Projection, projectionsOf, seqOrder } from '../../../src/domain/event/projection.ts';
import {
  append,
  buyer,
  closeLedger,
  closeMaster,
  commandKey,
  createMaster,
  delegate,
  grant,
  ledgerId,
  masterId,
  openingFacts,
  openLedger,
  revoke,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';
import { entriesAfter } from '../../support/store-entries.ts';
import { type Chain, chainOf, start } from '../../support/world.ts';

function projections(chain: Chain, seq: number): Projection[] {
  const event = chain.events.at(seq);
  if (event === undefined) throw new Error(`no event ${seq}`);
  return projectionsOf(event, chain.ledger.facts);
}

const scope = (name: string) => ({ kind: 'scope', scope: name });
const cell = (key: string, value: unknown) => ({ kind: 'cell', key, value });
const line = (list: string, order: string, value: unknown) => ({ kind: 'line', list, order, value });

/** Values of cells and lines as they are read back. */
function read(found: readonly Projection[]): object[] {
  return found.map((one) => ('value' in one ? { ...one, value: JSON.parse(one.value) } : one));
}

const chain = chainOf(
  openLedger(),
  createMaster({ commandKeys: [commandKey('k1')] }),
  append({ commandKeys: [commandKey('k2'), commandKey('s', 'digest', true)] }),
  grant(),
  grant({ linkId: uuid(0xcd), access: 'read' }),
  revoke(),
  grant({ scope: 'ledger', linkId: uuid(0xce) }),
  closeMaster(),
  closeLedger(),
);
const facts = chain.ledger.facts;
if (facts === null) throw new Error('no ledger');

describe('the projections of', () => {
  test('GENESIS are the ledger and a line for each party', () => {
    expect(read(projections(chain, 0))).toEqual([
      scope(names.ownEvents(ledgerId)),
      cell(names.ledger(ledgerId), facts),
      line(names.ledgersOf(buyer), ledgerOrder(facts), { ledgerId, role: 'buyer' }),
      line(names.ledgersOf(supplier), ledgerOrder(facts), { ledgerId, role: 'supplier' }),
    ]);
  });

  test('the root of an entity have one line for the entity on both sides', () => {
    const own = openingFacts('ENTITY_ROOT', {
      primaryActorId: supplier,
      counterpartyActorId: supplier,
      entityId: uuid(1),
    });
    const lines = projections(chainOf(openLedger({ facts: own })), 0).filter(({ kind }) => kind === 'line');
    expect(lines).toHaveLength(1);
    expect(read(lines)).toMatchObject([{ value: { role: 'primary' } }]);
  });

  test('a new master are its facts and its line in the order of the ledger', () => {
    expect(read(projections(chain, 2))).toEqual([
      scope(names.masterEvents(masterId)),
      { kind: 'command', command: commandKey('k1') },
      cell(names.master(masterId), expect.objectContaining({ masterId, ledgerId, createdSeq: 2 })),
      line(names.mastersOf(ledgerId), seqOrder(2), { masterId }),
    ]);
  });

  test('a business event are its scope and its command keys', () => {
    expect(projections(chain, 3)).toEqual([
      scope(names.masterEvents(masterId)),
      { kind: 'command', command: commandKey('k2') },
      { kind: 'command', command: commandKey('s', 'digest', true) },
    ]);
  });

  test('a grant are the held grant, the list of links and the lists of the delegate', () => {
    expect(read(projections(chain, 4))).toEqual([
      scope(names.masterEvents(masterId)),
      scope(names.delegationEvents('master', masterId)),
      cell(names.grant('master', masterId, delegate), {
        grant: expect.objectContaining({ linkId: uuid(0xcc) }),
        linkId: uuid(0xcc),
        revokedAt: null,
      }),
      line(names.links('master', masterId), seqOrder(4), expect.objectContaining({ linkId: uuid(0xcc) })),
      line(names.grantChanges('master', masterId, delegate), seqOrder(4), { expiresAt: null }),
      line(names.ledgersOf(delegate), `${ledgerOrder(facts)}|master|${masterId}`, {
        ledgerId,
        role: 'delegate',
        scope: 'master',
        objectId: masterId,
      }),
      line(names.masterLinksOf(ledgerId, delegate), masterId, { masterId }),
    ]);
  });

  test('a grant that replaces another end the link of the other', () => {
    const ended = cell(names.linkEnded(uuid(0xcc)), start);
    expect(read(projections(chain, 5))).toContainEqual(ended);
    expect(read(projections(chain, 4))).not.toContainEqual(
      expect.objectContaining({ key: names.linkEnded(uuid(0xcc)) }),
    );
  });

  test('a revocation are an empty grant and the end of the link', () => {
    expect(read(projections(chain, 6))).toEqual([
      scope(names.masterEvents(masterId)),
      scope(names.delegationEvents('master', masterId)),
      cell(names.grant('master', masterId, delegate), { grant: null, linkId: uuid(0xcd), revokedAt: start }),
      cell(names.linkEnded(uuid(0xcd)), start),
      line(names.grantChanges('master', masterId, delegate), seqOrder(6), null),
    ]);
  });

  test('a grant of the ledger are in the scope of the ledger and in no list of a master', () => {
    const found = projections(chain, 7);
    expect(found).toContainEqual(scope(names.ownEvents(ledgerId)));
    expect(found).toContainEqual(scope(names.delegationEvents('ledger', ledgerId)));
    expect(JSON.stringify(found)).not.toContain('master-links');
  });

  test('closings are the times of the close', () => {
    expect(read(projections(chain, 8))).toContainEqual(cell(names.masterClosed(masterId), start));
    expect(read(projections(chain, 9))).toContainEqual(cell(names.ledgerClosed(ledgerId), start));
  });

  test('a business event ignore fields that have names of the service', () => {
    const payload = `{"delegate_actor_id":"${delegate}","link_id":"x","organization_id":"y","role":"OWNER"}`;
    const loud = chainOf(openLedger(), createMaster(), append({ eventType: 'LEDGER_CLOSED_NOT', payload }));
    expect(projections(loud, 3)).toEqual([scope(names.masterEvents(masterId))]);
  });
});

describe('projections commute', () => {
  test('a cell ends with the value of its newest event, and a line has one value for each order', async () => {
    const all = chain.events.map((event) => projectionsOf(event, ledgerFacts(chain.events[0] ?? event)));
    const inOrder = new MemoryLedgerStore(() => 0);
    const claim = await inOrder.claim(ledgerId);
    await inOrder.append(claim, entriesAfter(null, all.length, { projections: (seq) => all[seq] ?? [] }));
    const keys = all.flat().flatMap((one) => (one.kind === 'cell' ? [one.key] : []));
    const newest = (key: string) =>
      all
        .findLast((ones) => ones.some((one) => one.kind === 'cell' && one.key === key))
        ?.find((one) => one.kind === 'cell' && one.key === key);
    for (const key of keys) {
      expect(await inOrder.cell(key)).toMatchObject({ value: (newest(key) as { value: string }).value });
    }
    // No list has two values for one order, so that lines may come in any order too.
    const lines = new Map<string, string>();
    for (const one of all.flat()) {
      if (one.kind !== 'line') continue;
      const known = lines.get(`${one.list} ${one.order}`);
      expect(known ?? one.value).toBe(one.value);
      lines.set(`${one.list} ${one.order}`, one.value);
    }
    expect(lines.size).toBeGreaterThan(5);
  });

  test('sort keys sort like the numbers and times that they encode', () => {
    const orders = [0, 9, 10, 99, 1_000, 2 ** 40, Number.MAX_SAFE_INTEGER].map(seqOrder);
    expect(orders.toSorted()).toEqual(orders);
  });
});
