import { describe, expect, test } from 'vitest';
import { LedgerTrustError } from '../../../../src/client/error.ts';
import { type Event, type FollowOptions, ProofRefused } from '../../../../src/client/index.ts';
import { ledgerId, messageOf, noProofs, scriptedService } from '../../../support/scripted-streams.ts';
import { chain, masterA, ofMasterA } from '../../../support/vector-chain.ts';

describe('a stream that ends without any message, behind the last event of a master of a closed ledger,', () => {
  const masterB = '0193a000-0000-7000-8000-0000000000bb';
  const ended = (events: readonly Event[], proveEvent = noProofs.proveEvent) =>
    scriptedService(() => ({ messages: [], end: null }), events, { ...noProofs, proveEvent });
  const behindLast = { masterId: masterB, after: 1 };
  const closing = chain[8] as Event;
  const withClosing = (change: Partial<Event>) => [...chain.slice(0, 8), { ...closing, ...change }];

  test('is over, once the closing of the ledger was read and checked', async () => {
    expect(await ended(chain).follow(behindLast)).toEqual({ seqs: [], heads: [5], code: null, types: null });
  });

  test('is over for a reader of the master alone, if the closing is proved to be in the ledger', async () => {
    const visible = chain.filter(({ masterId }) => masterId === null || masterId === masterB);
    const proven: number[] = [];
    const prove = (async ({ seq }: Event) => void proven.push(seq)) as unknown as typeof noProofs.proveEvent;
    expect(await ended(visible, prove).follow(behindLast)).toMatchObject({ heads: [5], code: null });
    expect(proven).toEqual([8]);
    await expect(ended(visible).follow(behindLast)).rejects.toBeInstanceOf(ProofRefused);
  });

  test.each([
    ['another payload', { payload: { ...closing.payload, status: 'OPEN' } }, 'hash_mismatch'],
    ['no seal', { authoritySig: null, authorityKeyId: null }, 'invalid_authority_sig'],
    [
      'the seal and the hash of another event',
      { hash: chain[1]?.hash, authoritySig: chain[1]?.authoritySig },
      'hash_mismatch',
    ],
    ['another ledger', { ledgerId: masterB }, 'broken_link'],
  ])('fails if the closing has %s', async (_, change, type) => {
    const { code, types, heads } = await ended(withClosing(change as Partial<Event>)).follow(behindLast);
    expect([code, heads]).toEqual(['integrity_failed', []]);
    expect(types).toContain(type);
  });

  test('is over, with the issues told once, if the closing does not verify and the user wants to know', async () => {
    const told: string[] = [];
    const { follow, opened } = ended(withClosing({ authoritySig: null, authorityKeyId: null }));
    const onIssues: FollowOptions['onIssues'] = (issues) => void told.push(...issues.map(({ type }) => type));
    expect(await follow(behindLast, { onIssues })).toMatchObject({ heads: [5], code: null });
    expect([told, opened]).toEqual([['invalid_authority_sig'], [1]]);
  });

  test.each([
    [
      'signs no checkpoint of the ledger',
      new LedgerTrustError('unavailable', 'no', { details: { reason: 'log_behind' } }),
    ],
    ['has no proofs', new LedgerTrustError('route_not_found', 'no')],
    ['does not sign checkpoints', new LedgerTrustError('invalid_answer', 'log')],
  ])('is over for a reader of the master alone whose service %s', async (_, error) => {
    const visible = chain.filter(({ masterId }) => masterId === null || masterId === masterB);
    const { follow } = ended(visible, () => Promise.reject(error));
    expect(await follow(behindLast)).toMatchObject({ heads: [5], code: null });
    const unsealed = visible.with(-1, { ...closing, authoritySig: null, authorityKeyId: null });
    const { code } = await ended(unsealed, () => Promise.reject(error)).follow(behindLast);
    expect(code).toBe('integrity_failed');
  });

  test.each(['permission_denied', 'access_expired', 'not_found'] as const)(
    'is over for a reader who cannot read the closing: %s',
    async (code) => {
      const script = () => ({ messages: [], end: null });
      const failures = { listLedgerEvents: new LedgerTrustError(code, 'no') };
      const { follow } = scriptedService(script, chain, noProofs, failures);
      expect(await follow(behindLast)).toMatchObject({ heads: [5], code: null });
      const lostList = scriptedService(script, chain, noProofs, {
        listLedgerEvents: new LedgerTrustError('internal', 'no'),
      });
      expect((await lostList.follow(behindLast)).code).toBe('internal');
    },
  );

  test('is not over if the service shows a later event of the master', async () => {
    expect(await ended(chain).follow({ ...behindLast, after: 0 })).toMatchObject({
      heads: [],
      code: 'invalid_answer',
    });
  });

  test('is over behind a MASTER_CLOSED that was read and checked', async () => {
    const [closed] = ofMasterA.filter(({ eventType }) => eventType === 'MASTER_CLOSED');
    expect(await ended(chain.slice(0, 8)).follow({ masterId: masterA, after: closed?.masterSeq ?? -1 })).toMatchObject({
      heads: [7],
      code: null,
    });
  });
});

describe('a stream that ends without any message, behind revocations that stand behind the closing,', () => {
  const revoked = (count: number, of: Partial<Event>) =>
    Array.from({ length: count }, (_, at) => ({
      ...(chain[8] as Event),
      ...of,
      seq: 9 + at,
      ...(of.masterId == null ? {} : { masterSeq: 4 + at }),
    }));
  const ofLedger = { eventType: 'LEDGER_DELEGATION_REVOKED' };
  const ofMaster = { eventType: 'MASTER_DELEGATION_REVOKED', masterId: masterA };

  test.each([0, 1, 250])('is over, whatever their number: %i', async (count) => {
    const { follow } = scriptedService(() => ({ messages: [], end: null }), [...chain, ...revoked(count, ofLedger)]);
    const last = 8 + count;
    // What is wrong with the revocation that following begins behind is of no interest here.
    const onIssues = () => {};
    expect(await follow({ ledgerId }, { onIssues })).toMatchObject({ seqs: [], heads: [last], code: null });
    expect(await follow({ ledgerId, after: last }, { onIssues })).toMatchObject({ heads: [last], code: null });
    const withMaster = scriptedService(() => ({ messages: [], end: null }), [...chain, ...revoked(count, ofMaster)]);
    const { code } = await withMaster.follow({ masterId: masterA }, { onIssues });
    expect(code).toBe(null);
  });

  test('is over also where there are more than are looked at', async () => {
    const { follow } = scriptedService(() => ({ messages: [], end: null }), revoked(10_200, ofLedger));
    expect(await follow({ ledgerId }, { onIssues: () => {} })).toMatchObject({ heads: [10_208], code: null });
  });
});

describe('a stream that ends without any message, behind other events than the closing that it shows,', () => {
  const shown = chain.with(3, { ...(chain[8] as Event), seq: 3 }).slice(0, 4);
  const masterClosed = { ...(chain[7] as Event), seq: 3, masterSeq: 1 };

  test.each([
    ['a ledger', { ledgerId, after: 1 }, shown, chain.slice(2, 4)],
    ['a master', { masterId: masterA, after: 0 }, chain.with(3, masterClosed).slice(0, 4), ofMasterA.slice(1, 2)],
  ] as const)('fails, of %s', async (_, request, events, sent) => {
    const script = (_after: number, count: number) => ({
      messages: count === 1 ? sent.map(messageOf) : [],
      end: null,
    });
    expect(await scriptedService(script, events).follow(request)).toMatchObject({
      seqs: sent.map(({ seq }) => seq),
      heads: [],
      code: 'integrity_failed',
      types: ['broken_link'],
    });
  });
});
