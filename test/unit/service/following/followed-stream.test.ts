import { describe, expect, test } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { isoTime } from '../../../../src/domain/values/time.ts';
import type { FollowEnd } from '../../../../src/service/following/follow-meter.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';
import { pageCharsMax } from '../../../../src/store/pages.ts';
import { append, buyer, createMaster, delegate, grant, revoke, siblingId } from '../../../support/commands.ts';
import { FollowersRig, type RigStream } from '../../../support/followers-rig.ts';
import { beforeCalls, storeWith } from '../../../support/world.ts';

const secondMs = 1_000;

describe('a stream that begins ahead of what its node has shown', () => {
  /** The node shows nothing behind seq 2 until `catchUp` is called. A follower keeps its tail open. */
  async function laggingRig() {
    let isBusy = false;
    const rig = await FollowersRig.withMaster({ limiter: { delayMs: () => (isBusy ? 100 : 0) } });
    rig.followLedger(buyer);
    await rig.settle();
    isBusy = true;
    await rig.commit(append(), append(), append());
    await rig.settle();
    const catchUp = async (): Promise<void> => {
      isBusy = false;
      await rig.pass(secondMs);
    };
    return { rig, catchUp };
  }

  test('gets heartbeats with the newest event that was shown, and is caught up when its place is reached', async () => {
    const { rig, catchUp } = await laggingRig();
    const stream = rig.followLedger(buyer, { afterSeq: 5n });
    await rig.pass(31 * secondMs);
    expect(stream.shown).toEqual(['heartbeat', 'heartbeat']);
    const head = { seq: 2n, hash: rig.chain.events[2]?.hash };
    expect(stream.answers[1]).toMatchObject({ message: { value: { head } }, resumeAfter: 5n });
    await catchUp();
    await rig.commit(append());
    await rig.settle();
    expect(stream.shown).toEqual(['heartbeat', 'heartbeat', 'caughtUp', 6]);
    expect(stream.toldSeqs).toEqual([2, 2, 5, 6]);
  });

  test('from now on can be resumed behind a heartbeat without a gap', async () => {
    const { rig, catchUp } = await laggingRig();
    const stream = rig.followLedger(buyer);
    await rig.pass(15 * secondMs);
    const resumeAfter = stream.answers[0]?.resumeAfter;
    expect([stream.shown, resumeAfter]).toEqual([['heartbeat'], 2n]);
    stream.leave();
    await stream.done;
    await rig.commit(append());
    await catchUp();
    const resumed = rig.followLedger(buyer, resumeAfter === undefined ? {} : { afterSeq: resumeAfter });
    await rig.settle();
    expect(resumed.shown).toEqual([3, 4, 5, 6, 'caughtUp']);
  });

  test('with a filter by time is told its own place, and not where the filter begins', async () => {
    const { rig } = await laggingRig();
    const stream = rig.followLedger(buyer, { afterSeq: 0n, from: isoTime(rig.clock.now() + 1) });
    await rig.pass(15 * secondMs);
    expect([stream.shown, stream.answers[0]?.resumeAfter]).toEqual([['heartbeat'], 0n]);
  });

  test.each([
    ['a place in it', { afterMasterSeq: 3n }, 3n],
    ['now', {}, 0n],
  ])(
    'of a master from %s on is told of its events alone, and finds none of them missing',
    async (_, from, resumeAfter) => {
      const { rig, catchUp } = await laggingRig();
      const stream = rig.followMaster(buyer, from);
      await rig.pass(15 * secondMs);
      const head = { seq: 2n, masterSeq: 0n };
      expect(stream.answers).toMatchObject([{ message: { case: 'heartbeat', value: { head } }, resumeAfter }]);
      await catchUp();
      await rig.commit(append());
      await rig.settle();
      expect(stream.shown).toEqual(['heartbeat', 'caughtUp', 6]);
      expect(stream.answers[2]).toMatchObject({ message: { value: { integrity: { verified: true } } } });
    },
  );

  test('is told of nothing behind a revocation that its node has not read', async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    let isHeld = false;
    // The tail, whose pages are smaller than others, does not get on. The beginning of a stream does.
    const store = (inner: LedgerStore) =>
      beforeCalls(inner, {
        read: (_, from, limit, charsMax = pageCharsMax) =>
          isHeld && from + limit > 4 && charsMax < pageCharsMax && held,
      });
    const rig = await FollowersRig.withMaster({ store });
    await rig.commit(grant({ access: 'read' }));
    rig.followLedger(buyer);
    await rig.settle();
    isHeld = true;
    await rig.commit(append(), append());
    const streams = [rig.followLedger(delegate), rig.followMaster(delegate)];
    // Stored grants are compared a second after the beginning, and a minute later.
    await rig.pass(2 * secondMs);
    const revoked = await rig.commit(revoke());
    await rig.commit(append());
    await rig.pass(30 * secondMs);
    for (const { shown } of streams) expect(shown).toEqual(['heartbeat', 'heartbeat']);
    expect(
      streams.map(({ toldSeqs, answers }) => [...toldSeqs, ...answers.map(({ resumeAfter }) => resumeAfter)]),
    ).toEqual([
      [3, 3, 3n, 3n],
      [3, 3, 1n, 1n],
    ]);
    letGo();
    for (const stream of streams) {
      await stream.done;
      expect(stream.error?.code).toBe('permission_denied');
      expect(Math.max(...stream.toldSeqs)).toBeLessThan(revoked.seq);
    }
  });
});

describe('a stream ends at once while the store hangs', () => {
  const ends: [string, (rig: FollowersRig, stream: RigStream) => unknown, string | undefined, FollowEnd][] = [
    ['because its reader leaves', (_, stream) => stream.leave(), undefined, 'caller_gone'],
    ['because its API key is revoked', (rig) => rig.revokeKey(delegate), 'invalid_api_key', 'credential'],
    ['because its node stops', (rig) => rig.followers.drain(), 'unavailable', 'draining'],
  ];

  async function hangingRig() {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const hanging = new Set<'read' | 'head'>();
    const holds = (call: 'read' | 'head') => () => hanging.has(call) && held;
    const store = (inner: LedgerStore) => beforeCalls(inner, { read: holds('read'), head: holds('head') });
    const rig = await FollowersRig.withMaster({ store });
    await rig.commit(grant({ access: 'read' }));
    return { rig, hanging, letGo };
  }

  test.each(ends)('%s', async (_, end, code, reason) => {
    const { rig, hanging, letGo } = await hangingRig();
    hanging.add('read');
    const stream = rig.followLedger(delegate, { afterSeq: -1n });
    await rig.settle();
    end(rig, stream);
    await rig.settle();
    const atOnce = [stream.hasEnded, stream.error?.code, rig.ended, rig.followers.count];
    expect(atOnce).toEqual([true, code, [reason], 0]);
    letGo();
    await rig.settle();
    expect([stream.shown, rig.ended, rig.counts.sent]).toEqual([[], [reason], 0]);
  });

  test('because its grant is revoked', async () => {
    const { rig, hanging } = await hangingRig();
    hanging.add('read');
    const stream = rig.followLedger(delegate, { afterSeq: -1n });
    await rig.settle();
    await rig.commit(revoke());
    await rig.pass(2 * secondMs);
    expect([stream.error?.code, stream.shown, rig.ended]).toEqual(['permission_denied', [], ['revoked']]);
  });

  test.each(ends)('before its first message, %s', async (_, end, code) => {
    const { rig, hanging, letGo } = await hangingRig();
    hanging.add('head');
    const stream = rig.followLedger(delegate);
    await rig.settle();
    end(rig, stream);
    await rig.settle();
    // Nobody hears what a caller that has left is told. It is for the log and the access history.
    expect([stream.hasEnded, stream.error?.code]).toEqual([true, code ?? 'unavailable']);
    expect(rig.records.filter(({ responseStatus }) => responseStatus < 400)).toEqual([]);
    letGo();
    await rig.settle();
    expect([stream.shown, rig.followers.count, rig.clock.timers]).toEqual([[], 0, 0]);
  });
});

describe('a heartbeat that cannot be made is left out, and the stream goes on', () => {
  /** A store whose reads of events fail as the test says, and in which the row of seq 3 is damaged. */
  async function failingRig(options: ConstructorParameters<typeof FollowersRig>[0] = {}) {
    let isFailing = false;
    const read = () => {
      if (isFailing) throw new LedgerError('unavailable', 'the store does not answer');
    };
    const store = (inner: LedgerStore) => {
      const damaged = storeWith(inner, {
        read: async (...given) =>
          (await inner.read(...given)).map((entry) => (entry.seq === 3 ? { ...entry, row: '{' } : entry)),
      });
      return beforeCalls(damaged, { read, readScope: read });
    };
    const rig = await FollowersRig.withMaster({ ...options, store });
    const fail = (fails: boolean): void => {
      isFailing = fails;
    };
    return { rig, fail };
  }

  test('where all readers of the ledger share it', async () => {
    const { rig, fail } = await failingRig();
    const stream = rig.followLedger(buyer);
    await rig.settle();
    // The newest event is damaged. What a heartbeat shows is found by reading backwards.
    await rig.commit(append());
    await rig.settle();
    fail(true);
    await rig.pass(16 * secondMs);
    expect([stream.shown, stream.error]).toEqual([['caughtUp'], null]);
    fail(false);
    await rig.pass(15 * secondMs);
    await rig.commit(append());
    await rig.settle();
    expect(stream.shown).toEqual(['caughtUp', 'heartbeat', 4]);
    expect(stream.toldSeqs).toEqual([2, 2, 4]);
  });

  test('where it is made for one reader alone', async () => {
    let isBusy = false;
    const { rig, fail } = await failingRig({ limiter: { delayMs: () => (isBusy ? 100 : 0) } });
    rig.followLedger(buyer);
    await rig.settle();
    isBusy = true;
    await rig.commit(createMaster({ masterId: siblingId, businessRef: 'PO-2' }));
    const stream = rig.followMaster(buyer);
    await rig.settle();
    fail(true);
    await rig.pass(16 * secondMs);
    expect([stream.shown, stream.error]).toEqual([[], null]);
    fail(false);
    await rig.pass(15 * secondMs);
    expect([stream.shown, stream.error]).toEqual([['heartbeat'], null]);
  });
});
