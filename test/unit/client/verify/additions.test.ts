import { describe, expect, it } from 'vitest';
import { type Event, type JsonObject, keysFromDocuments } from '../../../../src/client/index.ts';
import { buyer, delegate, supplier } from '../../../support/commands.ts';
import type { Kind } from '../../../support/ledger-kinds.ts';
import {
  documentOf,
  relinked,
  SignedLedger,
  verifySigned,
  withLastEvent,
  withUnsigned,
} from '../../../support/signed-ledgers.ts';

const kinds: Kind[] = ['order', 'order with organizations', 'facility root', 'entity root', 'engagement'];
const chain = [{ actor_id: delegate, actor_type: 'device', role: 'CARRIER' }];

/** What its actor signed first and the service then added to. */
function submitted(kind: Kind, sent: JsonObject = {}, added: JsonObject = {}): Event[] {
  const ledger = new SignedLedger(kind);
  const signed = { traceledger_master_uuid: ledger.injected.traceledger_master_uuid ?? '', ...sent };
  return ledger.append('INSPECTED', signed, signed, added).events;
}

async function issuesOf(events: readonly Event[], kind: 'ledger' | 'segment' | 'master' = 'ledger') {
  return (await verifySigned(events, { kind })).issues;
}

describe.each(kinds)('beside a signed payload, on a ledger that is an %s,', (kind) => {
  const { injected } = new SignedLedger(kind);

  it('everything stands that the service adds', async () => {
    const events = submitted(kind, { weight: 12.5 }, { delivery_chain: chain });
    expect(await verifySigned(events)).toMatchObject({ verdict: 'valid', issues: [] });
    expect((await verifySigned(submitted(kind, {}, { delivery_chain: [] }))).verdict).toBe('valid');
    expect(Object.keys(events.at(-1)?.payload ?? {})).toEqual(expect.arrayContaining(Object.keys(injected)));
    for (const part of [events.slice(2), events.slice(1), [events[0] as Event, ...events.slice(2)]])
      expect(await issuesOf(part, 'segment')).toEqual([]);
    const ofMaster = events.filter(({ masterId }) => masterId !== null);
    expect(await issuesOf(ofMaster, 'master')).toEqual([]);
    expect(await issuesOf(ofMaster.slice(1), 'master')).toEqual([]);
  });

  it('nothing else stands', async () => {
    const additions: JsonObject[] = [
      ...['buyer_actor_id', 'supplier_actor_id'].flatMap((name) =>
        [{ price: 1_000_000 }, 'anything', delegate, null].map((value) => ({ [name]: value })),
      ),
      ...['business_ref', 'scope'].map((name) => ({ [name]: 'other' })),
      { price: 1 },
      ...[null, {}, 'text', [1], [{ forged: 1 }], Array(17).fill(chain[0])].map((value) => ({ delivery_chain: value })),
      ...[{ role: 'x\n' }, { actor_type: 'robot' }, { actor_id: 'me' }, { note: 1 }].map((change) => ({
        delivery_chain: [{ ...chain[0], ...change }],
      })),
    ];
    const events = submitted(kind);
    for (const added of additions) {
      const what = JSON.stringify(added);
      const expected = [
        { type: 'contradiction', eventId: events.at(-1)?.id, detail: expect.stringContaining('payload.') },
      ];
      expect(await issuesOf(withUnsigned(events, added)), what).toMatchObject(expected);
    }
    for (const added of ['business_ref', 'scope'].flatMap((name) => [{ [name]: 7 }, { [name]: null }])) {
      const expected = [{ type: 'malformed_event', eventId: events.at(-1)?.id }];
      expect(await issuesOf(withUnsigned(events, added)), JSON.stringify(added)).toMatchObject(expected);
    }
  });

  it('no actor is named that the ledger does not have, also where events are missing', async () => {
    for (const name of ['buyer_actor_id', 'supplier_actor_id']) {
      if (name in injected) continue;
      const events = withUnsigned(submitted(kind), { [name]: delegate });
      const found = [{ type: 'contradiction', detail: `payload.${name} was not signed by the actor` }];
      expect(await issuesOf([events[0] as Event, ...events.slice(-1)], 'segment'), name).toMatchObject(found);
      const ofMaster = events.filter(({ masterId }) => masterId !== null);
      expect(await issuesOf(ofMaster, 'master'), name).toMatchObject(found);
    }
  });

  it('an author may send what the service does not add here', async () => {
    for (const name of ['buyer_actor_id', 'supplier_actor_id']) {
      if (name in injected) continue;
      const events = submitted(kind, { [name]: { any: 'thing' } });
      expect((await verifySigned(events)).verdict).toBe('valid');
      for (const part of [events.slice(-1), events.slice(-2), [events[0] as Event, ...events.slice(-1)]])
        expect(await issuesOf(part, 'segment')).toEqual([]);
    }
  });
});

describe('the event that creates a master', () => {
  const creating = (kind: Kind) => new SignedLedger(kind).events;

  it.each(kinds)('names the actors of its ledger alone, an %s', async (kind) => {
    const { injected } = new SignedLedger(kind);
    expect((await verifySigned(creating(kind))).verdict).toBe('valid');
    for (const name of ['buyer_actor_id', 'supplier_actor_id']) {
      const events = withUnsigned(creating(kind), { [name]: delegate });
      const [genesis, last] = [events[0] as Event, events.at(-1) as Event];
      const wrong = name in injected ? 'is not that of its ledger or master' : 'was not signed by the actor';
      const found = [{ type: 'contradiction', detail: `payload.${name} ${wrong}` }];
      expect(await issuesOf(events), name).toMatchObject(found);
      expect(await issuesOf([genesis, last], 'segment'), name).toMatchObject(found);
    }
  });

  it('names actors by their ids, also where its ledger is not known', async () => {
    const odd = withUnsigned(creating('engagement'), { buyer_actor_id: { price: 1 } });
    expect(await issuesOf(odd.slice(-1), 'segment')).toMatchObject([
      { type: 'contradiction', detail: 'payload.buyer_actor_id is not of the form that the service adds' },
    ]);
  });
});

describe('an event without a signature', () => {
  it('has what the service adds with its value', async () => {
    const keys = keysFromDocuments([{ actorId: supplier, keys: [] }, documentOf(buyer)]);
    const bare = { actorSig: null, signingKeyId: null, actorSigPayload: null };
    for (const kind of ['order', 'facility root'] as const) {
      const events = relinked(submitted(kind).map((event) => ({ ...event, ...bare })));
      expect((await verifySigned(events, { keys })).verdict).toBe('valid');
      const other = withLastEvent(events, ({ payload }) => ({ payload: { ...payload, supplier_actor_id: delegate } }));
      expect((await verifySigned(other, { keys })).issues).toMatchObject([{ type: 'contradiction' }]);
    }
  });
});

describe('an event with very many members that nobody signed', () => {
  const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`member${at}`, 0]));

  it('is invalid, by a bounded number of findings', async () => {
    const found = await issuesOf(withUnsigned(new SignedLedger('order').events, members(200_000)));
    expect(found.map(({ detail }) => detail)).toContain('payload.member0 was not signed by the actor');
    expect(found.map(({ detail }) => detail)).toContain(
      '199980 further members of the payload were not signed by the actor',
    );
    expect(found.length).toBeLessThan(30);
  });

  it('has names that are cut in findings', async () => {
    const found = await issuesOf(withUnsigned(new SignedLedger('order').events, { ['x'.repeat(1_000_000)]: 0 }));
    expect(JSON.stringify(found).length).toBeLessThan(2_000);
  });

  it('takes no time for each member and the size of its permissions', async () => {
    const [last] = new SignedLedger('order').events.slice(-1) as [Event];
    const permissions = { access: 'read', numbers: Array.from({ length: 20_000 }, () => 0) };
    const payload = { ...members(20_000), permissions };
    const grant = { ...last, eventType: 'LEDGER_DELEGATION_GRANTED', actorSigPayload: {}, payload };
    const begun = performance.now();
    expect((await verifySigned([grant], { kind: 'segment' })).verdict).toBe('invalid');
    expect(performance.now() - begun).toBeLessThan(3_000);
  });
});
