import { describe, expect, test } from 'vitest';
import type { Caller } from '../../../../src/client/call/call.ts';
import { LedgerTrustError } from '../../../../src/client/error.ts';
import { createFollowing, type FollowParts } from '../../../../src/client/follow/follow.ts';
import { type Event, type FollowOptions, type FollowRequest, ProofRefused } from '../../../../src/client/index.ts';
import { CompactRange } from '../../../../src/domain/log/compact-range.ts';
import { formatProofFile } from '../../../../src/domain/log/proof-file.ts';
import { leafHash } from '../../../../src/domain/log/tree.ts';
import { logVectors, ofHex } from '../../../support/log-vectors.ts';
import {
  authorityKey,
  chain,
  checkpointOf,
  documentOf,
  masterA,
  ofMasterA,
  otherValue,
  resealed,
} from '../../../support/vector-chain.ts';

const ledgerId = chain[0]?.ledgerId ?? '';
const sound = { verified: true, issues: [] };
const messageOf = (event: Event) => ({ kind: 'event', value: { event, integrity: sound } });
const headOf = ({ seq, hash, masterSeq }: Event) => ({ seq, hash, masterSeq });
const caughtUpAt = (event: Event) => ({ kind: 'caughtUp', value: { head: headOf(event) } });
const heartbeatAt = (event: Event, checkpoint: string | null) => ({
  kind: 'heartbeat',
  value: { head: headOf(event), checkpoint },
});
type Message = ReturnType<typeof messageOf | typeof caughtUpAt | typeof heartbeatAt>;

/** What one stream of the service does: its messages, and then how it ends. null: well. 'silent': not at all. */
interface Scripted {
  readonly messages: readonly Message[];
  readonly end: LedgerTrustError | null | 'silent';
}

const lost = () => new LedgerTrustError('connection_lost', 'cut');
const refusal = (code: 'permission_denied' | 'access_expired' | 'internal') => new LedgerTrustError(code, 'no');

/** The checkpoint of a size, or of another history. */
const signed = (size: number, root: Uint8Array = checkpointOf(size).root) => ({
  ...checkpointOf(size),
  root,
  note: '',
});
const noProofs: FollowParts['proofs'] = {
  takeNote: () => Promise.reject(new Error('there is none')),
  proveEvent: () => Promise.reject(new ProofRefused('wrong_event', 'there is none')),
  proveRecord: () => Promise.reject(new Error('there is none')),
};

/** A service with scripted streams. `script` gets the place behind which the `count`th stream was opened. */
function service(
  script: (after: number, count: number) => Scripted,
  events: readonly Event[] = chain,
  proofs: FollowParts['proofs'] = noProofs,
  failures: { readonly [method: string]: LedgerTrustError } = {},
) {
  const opened: number[] = [];
  const waits: number[] = [];
  const closing = new AbortController();
  const caller: Pick<Caller, 'call' | 'live'> = {
    async call({ name }, request) {
      if (name === 'getAuthority') return { keys: [authorityKey], phase: '2' };
      if (name === 'resolveActor') return { ...documentOf() };
      const failure = failures[name];
      if (failure !== undefined) throw failure;
      // A filtered page may end before its first event: the service examines a bounded number.
      if (request.eventType !== undefined) return { events: [], nextCursor: 'examined', integrity: sound };
      const ofMaster = name === 'listMasterEvents' ? events.filter(({ masterId }) => masterId === request.uuid) : null;
      const list = request.order === 'desc' ? (ofMaster ?? events).toReversed() : (ofMaster ?? events);
      const from = Number(request.fromSeq ?? 0);
      const place = list.filter(({ seq }) => seq >= from);
      const begin = Number(request.cursor ?? request.offset ?? 0);
      const end = begin + Number(request.limit);
      return { events: place.slice(begin, end), nextCursor: end < place.length ? String(end) : null, integrity: sound };
    },
    async *live(_endpoint, request, signal) {
      const after = Number(request.afterSeq ?? request.afterMasterSeq);
      opened.push(after);
      const { messages, end } = script(after, opened.length);
      yield* messages;
      if (end === 'silent')
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      if (end instanceof LedgerTrustError) throw end;
    },
  };
  const clock = {
    monotonicMs: () => 0,
    sleep: async (ms: number) => void waits.push(ms),
    random: () => 1,
  };
  const parts = { caller, proofs, clock, attemptsMax: 3, closing: closing.signal };
  const following = createFollowing(parts as unknown as FollowParts);
  /** Follows to the end. Resolves with the seqs that were handed out, and the code of the error. */
  const follow = async (request: FollowRequest, options: FollowOptions = {}) => {
    const seqs: number[] = [];
    const heads: number[] = [];
    let code: unknown = null;
    let types: unknown = null;
    try {
      const told = { onCaughtUp: ({ seq }: { readonly seq: number }) => void heads.push(seq) };
      for await (const event of following.follow(request, { ...told, ...options })) seqs.push(event.seq);
    } catch (error) {
      if (!(error instanceof LedgerTrustError)) throw error;
      code = error.code;
      types = (error.details.issues as { readonly type: string }[] | undefined)?.map(({ type }) => type);
    }
    return { seqs, heads, code, types };
  };
  return { follow, following, opened, waits, closing };
}

const behind = (after: number, events = chain) => events.filter(({ seq }) => seq > after).map(messageOf);
const all = chain.map(({ seq }) => seq);
const wholeLedger = { ledgerId, after: -1 };

describe('a stream that breaks off', () => {
  test.each(all)(
    'after any number of events is opened behind the last one, with nothing missing or twice: %i',
    async (at) => {
      const { follow, opened } = service((after, count) =>
        count === 1 ? { messages: behind(-1).slice(0, at), end: lost() } : { messages: behind(after), end: null },
      );
      const { seqs, code } = await follow(wholeLedger);
      expect([seqs, code]).toEqual([all, null]);
      expect(opened).toEqual([-1, at - 1]);
    },
  );

  test('after each event, with or without an error, still gives every event once', async () => {
    const { follow, opened } = service((after, count) => ({
      messages: behind(after).slice(0, 1),
      end: count % 2 === 0 ? lost() : null,
    }));
    expect((await follow(wholeLedger)).seqs).toEqual(all);
    expect(opened).toEqual(all.map((seq) => seq - 1));
  });

  test('without a message for too long counts as lost', async () => {
    const { follow, opened } = service((after, count) =>
      count === 1 ? { messages: behind(-1).slice(0, 2), end: 'silent' } : { messages: behind(after), end: null },
    );
    expect((await follow(wholeLedger, { silenceMaxMs: 20 })).seqs).toEqual(all);
    expect(opened).toEqual([-1, 1]);
  });

  test('is opened after growing waits, and not before the service asks', async () => {
    const draining = new LedgerTrustError('unavailable', 'stopping', { details: { retry_after_ms: 4_321 } });
    const { follow, waits } = service((after, count) => {
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

  test('is opened again without end once there was a connection, and only a few times before', async () => {
    const { follow, opened } = service((after, count) =>
      count > 20
        ? { messages: behind(after), end: null }
        : { messages: count === 1 ? behind(-1).slice(0, 1) : [], end: lost() },
    );
    expect((await follow(wholeLedger)).seqs).toEqual(all);
    expect(opened).toHaveLength(21);
    const never = service(() => ({ messages: [], end: lost() }));
    expect(await never.follow(wholeLedger)).toMatchObject({ seqs: [], code: 'connection_lost' });
    expect(never.opened).toHaveLength(3);
  });
});

describe('a stream that ends', () => {
  test.each(['permission_denied', 'access_expired', 'internal'] as const)(
    'with %s ends with this error',
    async (code) => {
      const { follow, opened } = service(() => ({ messages: behind(-1).slice(0, 2), end: refusal(code) }));
      expect(await follow(wholeLedger)).toMatchObject({ seqs: [0, 1], code });
      expect(opened).toHaveLength(1);
    },
  );

  test('behind LEDGER_CLOSED is over, even if the connection is lost there', async () => {
    const { follow, opened } = service(() => ({ messages: behind(-1), end: lost() }));
    const last = all.at(-1);
    expect(await follow(wholeLedger)).toEqual({ seqs: all, heads: [last], code: null, types: null });
    expect(opened).toHaveLength(1);
  });

  test('without any message is over, and is caught up', async () => {
    const { follow } = service(() => ({ messages: [], end: null }));
    const last = all.at(-1);
    expect(await follow({ ledgerId })).toEqual({ seqs: [], heads: [last], code: null, types: null });
  });

  test('before the closing is opened again until the closing came, also if it says that there is nothing more', async () => {
    const { follow, opened } = service((after, count) => ({
      messages: count === 1 ? behind(-1).slice(0, 3) : count < 8 ? [] : behind(after),
      end: null,
    }));
    const told: string[] = [];
    const onRetry: FollowOptions['onRetry'] = ({ error }) => void told.push(error.code);
    expect(await follow(wholeLedger, { onRetry })).toMatchObject({ seqs: all, heads: [8], code: null });
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
      const { follow, opened } = service(() => ({ messages: [], end: null }), events);
      expect(await follow(request)).toMatchObject({ seqs: [], heads: [], code: 'invalid_answer' });
      expect(opened).toHaveLength(3);
    }
  });

  describe('without any message, behind the last event of a master of a closed ledger,', () => {
    const masterB = '0193a000-0000-7000-8000-0000000000bb';
    const ended = (events: readonly Event[], proveEvent = noProofs.proveEvent) =>
      service(() => ({ messages: [], end: null }), events, { ...noProofs, proveEvent });
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
        const { follow } = service(script, chain, noProofs, failures);
        expect(await follow(behindLast)).toMatchObject({ heads: [5], code: null });
        const lostList = service(script, chain, noProofs, { listLedgerEvents: new LedgerTrustError('internal', 'no') });
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
      expect(
        await ended(chain.slice(0, 8)).follow({ masterId: masterA, after: closed?.masterSeq ?? -1 }),
      ).toMatchObject({
        heads: [7],
        code: null,
      });
    });
  });

  describe('without any message, behind revocations that stand behind the closing,', () => {
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
      const { follow } = service(() => ({ messages: [], end: null }), [...chain, ...revoked(count, ofLedger)]);
      const last = 8 + count;
      // What is wrong with the revocation that following begins behind is of no interest here.
      const onIssues = () => {};
      expect(await follow({ ledgerId }, { onIssues })).toMatchObject({ seqs: [], heads: [last], code: null });
      expect(await follow({ ledgerId, after: last }, { onIssues })).toMatchObject({ heads: [last], code: null });
      const withMaster = service(() => ({ messages: [], end: null }), [...chain, ...revoked(count, ofMaster)]);
      const { code } = await withMaster.follow({ masterId: masterA }, { onIssues });
      expect(code).toBe(null);
    });

    test('is over also where there are more than are looked at', async () => {
      const { follow } = service(() => ({ messages: [], end: null }), revoked(10_200, ofLedger));
      expect(await follow({ ledgerId }, { onIssues: () => {} })).toMatchObject({ heads: [10_208], code: null });
    });
  });

  describe('without any message, behind other events than the closing that it shows,', () => {
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
      expect(await service(script, events).follow(request)).toMatchObject({
        seqs: sent.map(({ seq }) => seq),
        heads: [],
        code: 'integrity_failed',
        types: ['broken_link'],
      });
    });
  });

  test('is not asked for behind an event that closed what is followed', async () => {
    const { follow, opened } = service(() => ({ messages: [], end: 'silent' }));
    expect(await follow({ ledgerId, after: 8 })).toEqual({ seqs: [], heads: [8], code: null, types: null });
    expect(opened).toEqual([]);
  });

  test('because the signal aborts or the client is closed throws the reason', async () => {
    const one = service(() => ({ messages: behind(-1).slice(0, 1), end: 'silent' }));
    const signal = AbortSignal.timeout(20);
    await expect(one.follow(wholeLedger, { signal })).rejects.toMatchObject({ name: 'TimeoutError' });
    const reason = new Error('closed');
    setTimeout(() => one.closing.abort(reason), 20);
    await expect(one.follow(wholeLedger)).rejects.toBe(reason);
    await expect(one.follow(wholeLedger)).rejects.toBe(reason);
  });
});

describe('a fault of the service is found', () => {
  const planted = (messages: readonly Message[], end: Scripted['end'] = null) => service(() => ({ messages, end }));
  const pick = (...seqs: number[]) => seqs.map((seq) => messageOf(chain[seq] as Event));

  test.each([
    ['a skip', [0, 1, 3], [0, 1], 'missing_event'],
    ['a repeat', [0, 1, 1], [0, 1], 'broken_link'],
    ['an older event again', [0, 1, 2, 0], [0, 1, 2], 'broken_link'],
    ['two events in the wrong order', [0, 2, 1], [0], 'missing_event'],
    ['a first event that is not the first', [1, 2], [], 'missing_event'],
  ])('%s', async (_, sent, handedOut, type) => {
    const { code, types, seqs } = await planted(pick(...sent)).follow(wholeLedger);
    expect([code, seqs]).toEqual(['integrity_failed', handedOut]);
    expect(types).toContain(type);
  });

  test('a skip and a repeat across a reconnect', async () => {
    for (const [sent, type] of [
      [pick(3), 'missing_event'],
      [pick(1, 2), 'broken_link'],
    ] as const) {
      const { follow } = service((_, count) =>
        count === 1 ? { messages: pick(0, 1), end: lost() } : { messages: sent, end: null },
      );
      const { code, types, seqs } = await follow(wholeLedger);
      expect([code, seqs]).toEqual(['integrity_failed', [0, 1]]);
      expect(types).toContain(type);
    }
  });

  test('a history that was written anew behind the last event', async () => {
    const forged = resealed(
      chain.map((event) => (event.seq === 1 ? { ...event, payload: { ...event.payload, note: 'x' } } : event)),
      1,
    );
    const { follow } = service((after, count) =>
      count === 1 ? { messages: pick(0, 1), end: lost() } : { messages: behind(after, forged), end: null },
    );
    const { code, types, seqs } = await follow(wholeLedger);
    expect([code, seqs]).toEqual(['integrity_failed', [0, 1]]);
    expect(types).toContain('hash_mismatch');
    const kept = { ...headOf(forged[1] as Event) };
    const rewritten = await planted([]).follow({ ledgerId, after: kept });
    expect(rewritten).toMatchObject({ code: 'integrity_failed', types: ['broken_link'] });
  });

  test.each(['hash', 'contentHash', 'payload', 'actorSig', 'createdAt'] as const)('a changed %s', async (name) => {
    const signed = chain.findIndex(({ actorSig }) => actorSig !== null);
    const changed = chain.map((event, at) =>
      at === signed ? { ...event, [name]: otherValue(name, event[name]) } : event,
    );
    const { code, seqs } = await planted(changed.map(messageOf)).follow(wholeLedger);
    expect([code, seqs]).toEqual(['integrity_failed', all.slice(0, signed)]);
  });

  test('what the service itself reports', async () => {
    const issues = [{ eventId: 'e', type: 'invalid_authority_sig', detail: 'd' }];
    const [first] = pick(0);
    const bad = { kind: 'event', value: { event: chain[0], integrity: { verified: false, issues } } } as typeof first;
    expect(await planted(bad === undefined ? [] : [bad]).follow(wholeLedger)).toMatchObject({
      code: 'integrity_failed',
      types: ['invalid_authority_sig'],
    });
  });

  test('a head with another hash than the event of this seq', async () => {
    const other = { ...(chain[1] as Event), hash: '0'.repeat(64) };
    expect(await planted([...pick(0, 1), caughtUpAt(other)]).follow(wholeLedger)).toMatchObject({
      seqs: [0, 1],
      heads: [],
      code: 'integrity_failed',
    });
  });

  test('a head beyond the events that came, where the service says that it has sent all', async () => {
    const told = [...pick(0, 1), caughtUpAt(chain[3] as Event)];
    expect(await planted(told).follow(wholeLedger)).toMatchObject({
      seqs: [0, 1],
      heads: [],
      code: 'integrity_failed',
      types: ['missing_event'],
    });
    const later = { kind: 'heartbeat', value: { head: headOf(chain[3] as Event), checkpoint: null } };
    const { code } = await service((_, count) => ({
      messages: count === 1 ? [...pick(0, 1), later] : behind(1),
      end: null,
    })).follow(wholeLedger);
    expect(code).toBe(null);
  });

  test('with onIssues the event is handed out all the same, but never twice', async () => {
    const found: string[][] = [];
    const { follow } = service((_, count) => ({ messages: count === 1 ? pick(0, 2, 2, 1, 3) : behind(3), end: null }));
    const { seqs, code } = await follow(wholeLedger, {
      onIssues: (issues) => void found.push(issues.map(({ type }) => type)),
    });
    expect([seqs, code]).toEqual([[0, 2, ...all.slice(3)], null]);
    expect(found).toHaveLength(3);
  });
});

describe('a follower that begins within the ledger', () => {
  test('recomputes every hash, and says when it is caught up', async () => {
    const last = chain.at(-1) as Event;
    const { following } = service((after) => ({ messages: [...behind(after), caughtUpAt(last)], end: null }));
    for (const after of all.slice(0, -1)) {
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
    const { follow, opened } = service((after, count) => ({
      messages: count === 1 ? script(after).slice(0, 2) : script(after),
      end: count === 1 ? lost() : null,
    }));
    expect((await follow(ofMaster)).seqs).toEqual(ofMasterA.map(({ seq }) => seq));
    expect(opened[1]).toBe(1);
    const skipping = service(() => ({ messages: script(-1).filter((_, at) => at !== 1), end: null }));
    expect(await skipping.follow(ofMaster)).toMatchObject({ code: 'integrity_failed' });
  });

  test('as a segment passes over gaps in the ledger, and finds those in a master', async () => {
    const segment = { ...wholeLedger, segment: true };
    const visible = chain.filter(({ masterId }) => masterId === null || masterId === masterA);
    const { follow } = service(() => ({ messages: visible.map(messageOf), end: null }));
    expect(await follow(segment)).toMatchObject({ seqs: visible.map(({ seq }) => seq), code: null });
    const [, second] = ofMasterA;
    const skipping = service(() => ({
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
    const { follow } = service(() => ({ messages, end: null }));
    expect(await follow(segment)).toMatchObject({ seqs: later.map(({ seq }) => seq), code: null });
  });

  test('needs a ledger or a master, and a place', () => {
    const { following } = service(() => ({ messages: [], end: null }));
    for (const wrong of [
      {},
      { ledgerId, after: -2 },
      { ledgerId, after: 0.5 },
      { masterId: masterA, after: chain[0] as Event },
    ])
      expect(() => following.follow(wrong)).toThrow(TypeError);
  });
});

describe('a checkpoint of a heartbeat', () => {
  const [first, second] = chain as readonly [Event, Event];
  const kept = (takeNote: FollowParts['proofs']['takeNote']) =>
    service(
      () => ({ messages: [messageOf(first), heartbeatAt(first, 'a note'), ...behind(first.seq)], end: null }),
      chain,
      { ...noProofs, takeNote },
    );

  test('is verified and kept as one of the ledger or the master that is followed', async () => {
    const taken: unknown[] = [];
    const takeNote: FollowParts['proofs']['takeNote'] = async (log, note) => {
      taken.push([log, note]);
      return log.kind === 'ledger' ? signed(5) : { ...checkpointOf(3, logVectors.masters[0]), note };
    };
    expect(await kept(takeNote).follow(wholeLedger)).toMatchObject({ seqs: all, code: null });
    expect(taken).toEqual([[{ kind: 'ledger', id: ledgerId }, 'a note']]);
    const ofMaster = service(
      () => ({ messages: [...ofMasterA.map(messageOf), heartbeatAt(second, 'its note')], end: null }),
      chain,
      { ...noProofs, takeNote },
    );
    expect((await ofMaster.follow({ masterId: masterA, after: -1 })).code).toBe(null);
    expect(taken[1]).toEqual([{ kind: 'master', id: masterA }, 'its note']);
  });

  test('that is refused ends following with the refusal, even if the stream ends meanwhile', async () => {
    const refusal = new ProofRefused('checkpoints_contradict', 'they contradict', ['one', 'other']);
    let refuse = () => {};
    const late = new Promise<never>((_, reject) => {
      refuse = () => reject(refusal);
    });
    const { following } = kept(() => late);
    const seqs: number[] = [];
    const reading = (async () => {
      for await (const event of following.follow(wholeLedger)) {
        seqs.push(event.seq);
        if (event.seq === chain.length - 1) refuse();
      }
    })();
    await expect(reading).rejects.toBe(refusal);
  });

  test.each([1, 3, 5, 9])('is compared with the events that were handed out, if it covers %i', async (size) => {
    for (const count of [1, 4, 5, 9]) {
      const messages = [...chain.slice(0, count).map(messageOf), heartbeatAt(chain[count - 1] as Event, 'a note')];
      const script = () => ({ messages: [...messages, ...behind(count - 1)], end: null });
      const noting = (root?: Uint8Array) =>
        service(script, chain, { ...noProofs, takeNote: async () => signed(size, root) });
      expect(await noting().follow(wholeLedger)).toMatchObject({ seqs: all, code: null });
      const lie = noting(new Uint8Array(32));
      expect(await lie.follow(wholeLedger)).toMatchObject({ code: 'integrity_failed', types: ['wrong_checkpoint'] });
      const taken = Array.fromAsync(lie.following.follow(wholeLedger));
      await expect(taken).rejects.toThrow(`What was handed out does not verify: the first ${size} events do not have`);
      const told: string[] = [];
      const onIssues: FollowOptions['onIssues'] = (issues) => void told.push(...issues.map(({ type }) => type));
      expect(await lie.follow(wholeLedger, { onIssues })).toMatchObject({ seqs: all, code: null });
      expect(told).toEqual(['wrong_checkpoint']);
    }
  });

  test('is compared from the middle of the ledger on too, once the event before is proved', async () => {
    const range = new CompactRange();
    for (const { hash } of chain.slice(0, 5)) range.append(leafHash(ofHex(hash)));
    const proof = formatProofFile({ index: 5, hashes: range.hashes().toReversed(), checkpoint: '' });
    const proven: number[] = [];
    const proveRecord: FollowParts['proofs']['proveRecord'] = async (_log, { index }) => {
      proven.push(index);
      return { index, checkpoint: signed(index + 1), proof };
    };
    const noting = (root?: Uint8Array) =>
      service(() => ({ messages: [heartbeatAt(chain[6] as Event, 'a note'), ...behind(5)], end: null }), chain, {
        ...noProofs,
        proveRecord,
        takeNote: async () => signed(8, root),
      });
    expect(await noting().follow({ ledgerId, after: 5 })).toMatchObject({ seqs: [6, 7, 8], code: null });
    const { code, types } = await noting(new Uint8Array(32)).follow({ ledgerId, after: 5 });
    expect([code, types]).toEqual(['integrity_failed', ['wrong_checkpoint']]);
    expect(proven).toEqual([5, 5]);
  });

  test('that cannot be compared just now is passed over', async () => {
    const { follow } = kept(() => Promise.reject(lost()));
    expect(await follow(wholeLedger)).toMatchObject({ seqs: all, code: null });
  });

  test('is left out by services that sign none', async () => {
    const { follow } = service(
      () => ({ messages: [messageOf(first), heartbeatAt(first, null), ...behind(first.seq)], end: null }),
      chain,
      { ...noProofs, takeNote: () => Promise.reject(new Error('there is none')) },
    );
    expect(await follow(wholeLedger)).toMatchObject({ seqs: all, code: null });
  });
});
