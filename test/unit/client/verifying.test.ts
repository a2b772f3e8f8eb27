import { describe, expect, it } from 'vitest';
import { type Event, type KeySource, verifyEvents } from '../../../src/client/index.ts';
import { eventTextsBytesMax } from '../../../src/domain/event/text-size.ts';
import {
  at,
  chain,
  changed,
  documentOf,
  masterA,
  ofMasterA,
  otherValue,
  resealed,
  supplier,
  verify,
  whole,
} from '../../support/vector-chain.ts';

describe('a whole ledger', () => {
  it('of the vectors is valid with every hash, signature and seal checked', async () => {
    expect(await verify(chain)).toEqual({
      verdict: 'valid',
      verified: true,
      issues: [],
      issueCount: 0,
      incomplete: [],
      // Six events that the actor signed, and its request to close the ledger.
      checked: { events: 9, contentHashes: 9, chainHashes: 9, actorSignatures: 7, authoritySeals: 3 },
      ledgerId: at(0).ledgerId,
      masterId: null,
      checkpoint: null,
      checkpoints: [],
      head: { seq: 8, hash: at(8).hash },
    });
  });

  it('is invalid as another ledger or as a master', async () => {
    const other = '0193a000-0000-7000-8000-000000000002';
    const found = await verify(chain, { ledgerId: other });
    expect(found).toMatchObject({ verdict: 'invalid', ledgerId: other });
    const detail = `the event is one of another ledger, ${at(0).ledgerId}`;
    expect(found.issues).toEqual(chain.map(({ id }) => ({ eventId: id, type: 'broken_link', detail })));
    expect((await verify(chain, { ledgerId: at(0).ledgerId })).verdict).toBe('valid');
    const ofMaster = await verify(chain, { masterId: masterA });
    const elsewhere = chain.filter(({ masterId }) => masterId !== masterA);
    expect(ofMaster.issues.map(({ eventId, type }) => [eventId, type])).toEqual(
      elsewhere.map(({ id }) => [id, 'broken_link']),
    );
    expect(ofMaster.issues[0]?.detail).toBe('the event is one of no master');
  });

  it('is named as asked if it contains no event', async () => {
    expect(await verify([])).toMatchObject({ ledgerId: null, masterId: null });
    expect(await verify([], { ledgerId: at(0).ledgerId, masterId: masterA })).toMatchObject({
      ledgerId: at(0).ledgerId,
      masterId: masterA,
    });
  });

  it('is valid from an async source too', async () => {
    const source = async function* () {
      yield* chain;
    };
    expect((await verifyEvents(source(), whole)).verdict).toBe('valid');
  });

  it('is still valid after a reseal without a change', async () => {
    expect((await verify(resealed(chain, 0))).verdict).toBe('valid');
  });
});

describe('the events of a master', () => {
  const kind = 'master';

  it('are reported with the master and its ledger', async () => {
    const found = await verify(ofMasterA, { kind });
    expect(found).toMatchObject({ issues: [], ledgerId: at(0).ledgerId, masterId: masterA });
  });

  it('are invalid as those of another master', async () => {
    const other = '0193a000-0000-7000-8000-0000000000bb';
    const { issues } = await verify(ofMasterA, { kind, masterId: other });
    const detail = `the event is one of another master, ${masterA}`;
    expect(issues).toEqual(ofMasterA.map(({ id }) => ({ eventId: id, type: 'broken_link', detail })));
    const ofLedger = await verify([at(0), at(1)], { kind });
    expect(ofLedger.issues).toMatchObject([{ eventId: at(0).id, detail: 'the event is one of no master' }, {}]);
  });
});

describe('a single changed field', () => {
  const names = Object.keys(at(0)) as (keyof Event)[];
  for (const [index, event] of chain.entries()) {
    it(`is found in event ${index}, ${event.eventType}`, async () => {
      for (const name of names) {
        const { verdict, issues } = await verify(changed(index, { [name]: otherValue(name, event[name]) }));
        expect(verdict, `${name} of event ${index}`).toBe('invalid');
        expect(issues.length, name).toBeGreaterThan(0);
      }
    });

    it(`is found in event ${index} when the field is taken away or set to null`, async () => {
      for (const name of names) {
        if (
          event[name] === null ||
          ['id', 'ledgerId', 'seq', 'eventType', 'hash', 'contentHash', 'createdAt', 'payload', 'actorType'].includes(
            name,
          )
        )
          continue;
        expect((await verify(changed(index, { [name]: null }))).verdict, `${name} of event ${index}`).toBe('invalid');
      }
    });

    it(`is found in event ${index} for every member of its payloads`, async () => {
      for (const [name, value] of Object.entries(event.payload)) {
        const { [name]: _, ...rest } = event.payload;
        expect((await verify(changed(index, { payload: rest }))).verdict, `without ${name}`).toBe('invalid');
        const other = { ...event.payload, [name]: typeof value === 'string' ? `${value}x` : 'x' };
        expect((await verify(changed(index, { payload: other }))).verdict, `other ${name}`).toBe('invalid');
      }
      for (const name of Object.keys(event.actorSigPayload ?? {})) {
        const { [name]: _, ...rest } = event.actorSigPayload ?? {};
        expect((await verify(changed(index, { actorSigPayload: rest }))).verdict, `signed without ${name}`).toBe(
          'invalid',
        );
      }
    });
  }

  it('names the event that was changed', async () => {
    const { issues } = await verify(changed(4, { payload: { ...at(4).payload, weight: 13 } }));
    expect(issues.map((issue) => [issue.eventId, issue.type])).toEqual([
      [at(4).id, 'hash_mismatch'],
      [at(4).id, 'invalid_actor_sig'],
    ]);
  });
});

/** Event 4 with a payload and a signed form of so many bytes together. */
function textsOf(bytes: number): Partial<Event> {
  const payload = (note: string) => ({ ...at(4).payload, note });
  const signed = payload('ü'.repeat(100_000));
  const without = [signed, payload('')].map((value) => Buffer.byteLength(JSON.stringify(value)));
  const rest = bytes - without.reduce((sum, one) => sum + one);
  return { payload: payload('x'.repeat(rest)), actorSigPayload: signed };
}

describe('an event', () => {
  it.each([
    [
      'a business_ref of 256 characters of any script',
      { payload: { ...at(4).payload, business_ref: '\u{1f4a9}'.repeat(256) } },
    ],
    ['all the bytes that an event may have', textsOf(eventTextsBytesMax)],
  ])('may have %s', async (_, change) => {
    const { issues } = await verify(changed(4, change));
    expect(issues.map(({ type }) => type)).not.toContain('malformed_event');
  });
});

describe('a malformed event', () => {
  it('sends nobody to ask for the keys of what is no actor', async () => {
    const asked = new Set<string>();
    const keys: KeySource = {
      document: (actorId) => {
        asked.add(actorId);
        return documentOf();
      },
    };
    for (const actorId of ['', 'not-a-uuid', '\0', 'x/../..', `${at(4).actorId}#key-1`])
      expect((await verify(changed(4, { actorId, actorSig: null }), { keys })).verdict).toBe('invalid');
    expect([...asked]).toEqual([supplier]);
  });

  const odd: [string, Partial<Event>][] = [
    ['an upper-case id', { id: at(4).id.toUpperCase() }],
    ['a fraction as seq', { seq: 4.5 }],
    ['a short hash', { hash: 'abc' }],
    ['a time without milliseconds', { createdAt: '2026-11-21T02:06:39Z' }],
    ['a NUL in the type', { eventType: 'A\0B' }],
    ['no type', { eventType: '' }],
    ['a type that callers may not use', { eventType: 'PING' }],
    ['a type with a zero-width space', { eventType: 'GENESIS\u200b' }],
    ['a type that is read from right to left', { eventType: '\u202eDESOLC' }],
    ['half a surrogate pair in the type', { eventType: 'PAID_\ud800' }],
    ['a line break behind the type', { eventType: 'LEDGER_CLOSED\n' }],
    ['a type of 129 characters', { eventType: 'x'.repeat(129) }],
    ['an actor that has no id', { actorId: '' }],
    ['an upper-case actor_id', { actorId: at(4).actorId?.toUpperCase() ?? null }],
    ['a path as actor_id', { actorId: 'x/../../v1/ledgers?y=1#' }],
    ['an actor_type that the service does not know', { actorType: 'robot' }],
    ['a cause that is no hash', { causedByHash: 'not a hash' }],
    ['a number that JSON cannot say', { payload: { weight: Number.POSITIVE_INFINITY } }],
    ['half a surrogate pair', { payload: { note: '\ud800' } }],
    ...(['', 'a\0', 'a\u009b', '\u{1f4a9}'.repeat(257), 5, null] as const).map((name): [string, Partial<Event>] => [
      `the business_ref ${JSON.stringify(name).slice(0, 20)}`,
      { payload: { ...at(4).payload, business_ref: name } },
    ]),
    ...(['', '9', 'a\n', '１', 'a'.repeat(65), 5, null] as const).map((scope): [string, Partial<Event>] => [
      `the scope ${JSON.stringify(scope).slice(0, 20)}`,
      { payload: { ...at(4).payload, scope } },
    ]),
    ['texts that are too long together', textsOf(eventTextsBytesMax + 1)],
  ];
  it.each(odd)('with %s is reported and does not end the verification', async (_, change) => {
    const { verdict, issues, checked } = await verify(changed(4, change));
    expect(verdict).toBe('invalid');
    expect(issues[0]).toMatchObject({ type: 'malformed_event' });
    expect(checked.events).toBe(9);
  });
});
