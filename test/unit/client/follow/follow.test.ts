import { describe, expect, test } from 'vitest';
import { LedgerTrustError } from '../../../../src/client/error.ts';
import type { Event, FollowOptions } from '../../../../src/client/index.ts';
import {
  allSeqs,
  behind,
  caughtUpAt,
  ledgerId,
  lost,
  messageOf,
  scriptedService,
  wholeLedger,
} from '../../../support/scripted-streams.ts';
import { chain, masterA, ofMasterA } from '../../../support/vector-chain.ts';

const refusal = (code: 'permission_denied' | 'access_expired' | 'internal') => new LedgerTrustError(code, 'no');

describe('a stream that breaks off', () => {
  test.each(allSeqs)(
    'after any number of events is opened behind the last one, with nothing missing or twice: %i',
    async (at) => {
      const { follow, opened } = scriptedService((after, count) =>
        count === 1 ? { messages: behind(-1).slice(0, at), end: lost() } : { messages: behind(after), end: null },
      );
      const { seqs, code } = await follow(wholeLedger);
      expect([seqs, code]).toEqual([allSeqs, null]);
      expect(opened).toEqual([-1, at - 1]);
    },
  );

  test('after each event, with or without an error, still gives every event once', async () => {
    const { follow, opened } = scriptedService((after, count) => ({
      messages: behind(after).slice(0, 1),
      end: count % 2 === 0 ? lost() : null,
    }));
    expect((await follow(wholeLedger)).seqs).toEqual(allSeqs);
    expect(opened).toEqual(allSeqs.map((seq) => seq - 1));
  });

  test('without a message for too long counts as lost', async () => {
    const { follow, opened } = scriptedService((after, count) =>
      count === 1 ? { messages: behind(-1).slice(0, 2), end: 'silent' } : { messages: behind(after), end: null },
    );
    expect((await follow(wholeLedger, { silenceMaxMs: 20 })).seqs).toEqual(allSeqs);
    expect(opened).toEqual([-1, 1]);
  });

  test('is opened after growing waits, and not before the service asks', async () => {
    const draining = new LedgerTrustError('unavailable', 'stopping', { details: { retry_after_ms: 4_321 } });
    const { follow, waits } = scriptedService((after, count) => {
      if (count === 1) return { messages: behind(-1).slice(0, 1), end: lost() };
      if (count === 2) return { messages: [], end: lost() };
      if (count === 3) return { messages: [], end: draining };
      return { messages: behind(after), end: null };
    });
    const told: number[] = [];
    await follow(wholeLedger, { onRetry: ({ waitMs }) => void told.push(waitMs) });
    expect(waits).toEqual([100, 200, 4_321]);
    expect(told).toEqual(waits);
  });

  test.each([
    ['3e9 ms', { details: { retry_after_ms: 3e9 } }],
    ['endless ms', { details: { retry_after_ms: Number.POSITIVE_INFINITY } }],
    ['11 days by its header', { retryAfterMs: 999_999_000 }],
  ])('is opened after a minute if the service asks for %s', async (_, asked) => {
    const draining = new LedgerTrustError('unavailable', 'stopping', asked);
    const { follow, waits } = scriptedService((after, count) =>
      count === 1 ? { messages: behind(-1).slice(0, 1), end: draining } : { messages: behind(after), end: null },
    );
    await follow(wholeLedger);
    expect(waits).toEqual([60_000]);
  });

  test('is opened again without end once there was a connection, and only a few times before', async () => {
    const { follow, opened } = scriptedService((after, count) =>
      count > 20
        ? { messages: behind(after), end: null }
        : { messages: count === 1 ? behind(-1).slice(0, 1) : [], end: lost() },
    );
    expect((await follow(wholeLedger)).seqs).toEqual(allSeqs);
    expect(opened).toHaveLength(21);
    const never = scriptedService(() => ({ messages: [], end: lost() }));
    expect(await never.follow(wholeLedger)).toMatchObject({ seqs: [], code: 'connection_lost' });
    expect(never.opened).toHaveLength(3);
  });
});

describe('a stream that ends', () => {
  test.each(['permission_denied', 'access_expired', 'internal'] as const)(
    'with %s ends with this error',
    async (code) => {
      const { follow, opened } = scriptedService(() => ({ messages: behind(-1).slice(0, 2), end: refusal(code) }));
      expect(await follow(wholeLedger)).toMatchObject({ seqs: [0, 1], code });
      expect(opened).toHaveLength(1);
    },
  );

  test('behind LEDGER_CLOSED is over, even if the connection is lost there', async () => {
    const { follow, opened } = scriptedService(() => ({ messages: behind(-1), end: lost() }));
    const last = allSeqs.at(-1);
    expect(await follow(wholeLedger)).toEqual({ seqs: allSeqs, heads: [last], code: null, types: null });
    expect(opened).toHaveLength(1);
  });

  test('without any message is over, and is caught up', async () => {
    const { follow } = scriptedService(() => ({ messages: [], end: null }));
    const last = allSeqs.at(-1);
    expect(await follow({ ledgerId })).toEqual({ seqs: [], heads: [last], code: null, types: null });
  });

  test('before the closing is opened again until the closing came, also if it says that there is nothing more', async () => {
    const { follow, opened } = scriptedService((after, count) => ({
      messages: count === 1 ? behind(-1).slice(0, 3) : count < 8 ? [] : behind(after),
      end: null,
    }));
    const told: string[] = [];
    const onRetry: FollowOptions['onRetry'] = ({ error }) => void told.push(error.code);
    expect(await follow(wholeLedger, { onRetry })).toMatchObject({ seqs: allSeqs, heads: [8], code: null });
    expect(opened).toEqual([-1, 2, 2, 2, 2, 2, 2, 2]);
    expect(told).toEqual(['connection_lost', ...Array(6).fill('invalid_answer')]);
  });

  test('without any message, as the first ones, is no end where no closing stands before', async () => {
    for (const [request, events] of [
      [wholeLedger, chain],
      [{ ledgerId, after: 3 }, chain],
      [{ ledgerId }, chain.slice(0, -1)],
      [{ masterId: masterA, after: 0 }, chain.slice(0, -1)],
    ] as const) {
      const { follow, opened } = scriptedService(() => ({ messages: [], end: null }), events);
      expect(await follow(request)).toMatchObject({ seqs: [], heads: [], code: 'invalid_answer' });
      expect(opened).toHaveLength(3);
    }
  });

  test('is not asked for behind an event that closed what is followed', async () => {
    const { follow, opened } = scriptedService(() => ({ messages: [], end: 'silent' }));
    expect(await follow({ ledgerId, after: 8 })).toEqual({ seqs: [], heads: [8], code: null, types: null });
    expect(opened).toEqual([]);
  });

  test('because the signal aborts or the client is closed throws the reason', async () => {
    const one = scriptedService(() => ({ messages: behind(-1).slice(0, 1), end: 'silent' }));
    const signal = AbortSignal.timeout(20);
    await expect(one.follow(wholeLedger, { signal })).rejects.toMatchObject({ name: 'TimeoutError' });
    const reason = new Error('closed');
    setTimeout(() => one.closing.abort(reason), 20);
    await expect(one.follow(wholeLedger)).rejects.toBe(reason);
    await expect(one.follow(wholeLedger)).rejects.toBe(reason);
  });
});

describe('a follower that begins within the ledger', () => {
  test('recomputes every hash, and says when it is caught up', async () => {
    const last = chain.at(-1) as Event;
    const { following } = scriptedService((after) => ({ messages: [...behind(after), caughtUpAt(last)], end: null }));
    for (const after of allSeqs.slice(0, -1)) {
      const checks = [];
      const heads: number[] = [];
      const options = { onCaughtUp: ({ seq }: { readonly seq: number }) => void heads.push(seq) };
      for await (const event of following.follow({ ledgerId, after }, options)) checks.push(event.checks);
      expect(checks).toHaveLength(last.seq - after);
      for (const { contentHash, chainHash } of checks) expect([contentHash, chainHash]).toEqual([true, true]);
      expect(heads).toEqual([last.seq]);
    }
  });

  test('of one master resumes by master_seq, and finds a skip', async () => {
    const ofMaster = { masterId: masterA, after: -1 };
    const script = (after: number) => ofMasterA.filter(({ masterSeq }) => (masterSeq ?? 0) > after).map(messageOf);
    const { follow, opened } = scriptedService((after, count) => ({
      messages: count === 1 ? script(after).slice(0, 2) : script(after),
      end: count === 1 ? lost() : null,
    }));
    expect((await follow(ofMaster)).seqs).toEqual(ofMasterA.map(({ seq }) => seq));
    expect(opened[1]).toBe(1);
    const skipping = scriptedService(() => ({ messages: script(-1).filter((_, at) => at !== 1), end: null }));
    expect(await skipping.follow(ofMaster)).toMatchObject({ code: 'integrity_failed' });
  });

  test('as a segment passes over gaps in the ledger, and finds those in a master', async () => {
    const segment = { ...wholeLedger, segment: true };
    const visible = chain.filter(({ masterId }) => masterId === null || masterId === masterA);
    const { follow } = scriptedService(() => ({ messages: visible.map(messageOf), end: null }));
    expect(await follow(segment)).toMatchObject({ seqs: visible.map(({ seq }) => seq), code: null });
    const [, second] = ofMasterA;
    const skipping = scriptedService(() => ({
      messages: visible.filter((event) => event !== second).map(messageOf),
      end: null,
    }));
    expect(await skipping.follow(segment)).toMatchObject({
      code: 'integrity_failed',
      types: expect.arrayContaining(['missing_event']),
    });
  });

  test('as a segment has no issue with a master that begins anywhere, as one does around a grant', async () => {
    const segment = { ...wholeLedger, segment: true };
    const later = chain.filter(
      ({ masterId, masterSeq }) => masterId === null || (masterId === masterA && masterSeq !== 0),
    );
    const [head, rest] = [later.slice(0, 3), later.slice(3)];
    const messages = [...head.map(messageOf), caughtUpAt(head.at(-1) as Event), ...rest.map(messageOf)];
    const { follow } = scriptedService(() => ({ messages, end: null }));
    expect(await follow(segment)).toMatchObject({ seqs: later.map(({ seq }) => seq), code: null });
  });

  test('needs a ledger or a master, and a place', () => {
    const { following } = scriptedService(() => ({ messages: [], end: null }));
    for (const wrong of [
      {},
      { ledgerId, after: -2 },
      { ledgerId, after: 0.5 },
      { masterId: masterA, after: chain[0] as Event },
    ])
      expect(() => following.follow(wrong)).toThrow(TypeError);
  });
});
