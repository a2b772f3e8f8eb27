import { describe, expect, it } from 'vitest';
import { type Event, keysFromDocuments } from '../../../src/client/index.ts';
import {
  at,
  authorityKey,
  chain,
  changed,
  documentOf,
  ofMasterA,
  resealed,
  verify,
} from '../../support/vector-chain.ts';

/** All that the service itself can forge: hashes and seals are right, and no actor's signature is needed. */
const stranger = '0193a000-0000-7000-8000-0000000000ff';
const unsigned = { actorSig: null, signingKeyId: null, actorSigPayload: null, authorityKeyId: 'svc:authority#key-1' };
const typesOf = async (events: readonly Event[], options = {}) =>
  (await verify(events, options)).issues.map(({ type, eventId }) => [type, eventId]);

describe('a service with all its own keys', () => {
  it('cannot let a stranger write', async () => {
    const { verdict, issues } = await verify(resealed(changed(4, { ...unsigned, actorId: stranger }), 4));
    expect(verdict).toBe('invalid');
    expect(issues).toEqual([
      {
        eventId: at(4).id,
        type: 'not_permitted',
        detail: `actor ${stranger} was no party and held no grant at ${at(4).createdAt}`,
      },
    ]);
  });

  it('cannot write to a ledger or master that was closed', async () => {
    const createdAt = '2026-11-21T02:06:39.109Z';
    const late = { ...at(5), id: '0193a000-0000-7000-8000-0000000000f1', seq: 9, masterSeq: 2, createdAt };
    expect(await typesOf(resealed([...chain, late], 9))).toEqual([['closed', late.id]]);
    const onMaster = { ...at(4), id: late.id, seq: 8, masterSeq: 4, createdAt };
    expect(await typesOf(resealed([...chain.slice(0, 8), onMaster], 8))).toEqual([['closed', late.id]]);
    const ofMaster = resealed([...chain.slice(0, 8), onMaster], 8).filter(
      ({ masterId }) => masterId === at(4).masterId,
    );
    expect(await typesOf(ofMaster, { kind: 'master' })).toEqual([['closed', late.id]]);
  });

  it('cannot date an event in the future', async () => {
    const ahead = resealed(changed(8, { createdAt: '2099-01-01T00:00:00.000Z' }), 8);
    expect(await typesOf(ahead)).toEqual([['dated_ahead', at(8).id]]);
    expect(await typesOf(chain, { latest: at(7).createdAt })).toEqual([['dated_ahead', at(8).id]]);
  });

  it('cannot give a grant another object or time', async () => {
    const payload = { ...at(6).payload, granted_at: '2026-11-21T02:06:39.107Z' };
    expect(await typesOf(resealed(changed(6, { payload }), 6))).toEqual([['contradiction', at(6).id]]);
  });
});

describe('an incomplete list', () => {
  it('shows no missing right for a master or a segment', async () => {
    const others = (events: readonly Event[]) => resealed(events, 1);
    const strangers = others(changed(4, { ...unsigned, actorId: stranger }));
    const ofMaster = strangers.filter(({ masterId }) => masterId === at(4).masterId);
    expect((await verify(ofMaster, { kind: 'master' })).issues).toEqual([]);
    const segment = strangers.filter(({ seq }) => seq !== 1);
    expect((await verify(segment, { kind: 'segment' })).issues).toEqual([]);
    expect((await verify(ofMasterA, { kind: 'master' })).issues).toEqual([]);
  });
});

describe('keys that came with the events', () => {
  const keys = keysFromDocuments([documentOf()]);
  const authorityKeys = [authorityKey];

  it.each([
    ['all', []],
    ['actors', ['authority_keys_untrusted']],
    ['authority', ['actor_keys_untrusted']],
    ['none', ['authority_keys_untrusted', 'actor_keys_untrusted']],
    [undefined, ['authority_keys_untrusted', 'actor_keys_untrusted']],
  ] as const)('are trusted only as far as the caller says: %s', async (trustedKeys, reasons) => {
    const found = await verify(chain, { keys, authorityKeys, trustedKeys });
    expect(found.issues).toEqual([]);
    expect(found.checked).toMatchObject({ actorSignatures: 7, authoritySeals: 3 });
    expect(found.incomplete.map(({ type }) => type)).toEqual(reasons);
    expect([found.verdict, found.verified]).toEqual(reasons.length === 0 ? ['valid', true] : ['incomplete', false]);
  });

  it('are trusted for actors if they are from the resolver of the caller', async () => {
    const found = await verify(chain, { keys: { ...keys, isResolver: true }, authorityKeys, trustedKeys: undefined });
    expect(found.incomplete).toMatchObject([{ type: 'authority_keys_untrusted', count: 3, eventId: at(0).id }]);
  });
});
