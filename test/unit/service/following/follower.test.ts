import { describe, expect, test, vi } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { isoTime } from '../../../../src/domain/values/time.ts';
import type { FollowEnd } from '../../../../src/service/following/follow-meter.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';
import {
  append,
  buyer,
  closeLedger,
  closeMaster,
  createMaster,
  delegate,
  grant,
  masterId,
  openLedger,
  revoke,
  siblingId,
} from '../../../support/commands.ts';
import { FollowersRig, type RigStream } from '../../../support/followers-rig.ts';
import { storeWith } from '../../../support/world.ts';

const secondMs = 1_000;
const minuteMs = 60 * secondMs;

async function rigWithMaster(options: ConstructorParameters<typeof FollowersRig>[0] = {}): Promise<FollowersRig> {
  const rig = new FollowersRig(options);
  await rig.commit(openLedger(), createMaster());
  return rig;
}

/** Lets time pass as a node sees it: its timers run in between. */
async function pass(rig: FollowersRig, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += secondMs) {
    await rig.clock.advance(Math.min(secondMs, ms - passed));
    await rig.settle();
  }
}

describe('the access history of a follower', () => {
  test('has one record when it begins, and none for heartbeats', async () => {
    const rig = await rigWithMaster();
    const stream = rig.followLedger(buyer);
    await rig.settle();
    expect(rig.records).toMatchObject([{ actorId: buyer, responseStatus: 200, at: rig.clock.now() }]);
    await pass(rig, 5 * minuteMs);
    expect(stream.shown.filter((shown) => shown === 'heartbeat').length).toBeGreaterThan(10);
    expect(rig.records).toHaveLength(1);
    stream.leave();
    await stream.done;
    expect(rig.records).toHaveLength(1);
  });

  test('has one more for each minute in which it delivers, however many events', async () => {
    const rig = await rigWithMaster();
    const beganMs = rig.clock.now();
    rig.followLedger(buyer);
    await rig.settle();
    for (let second = 0; second < 150; second += 1) {
      await rig.commit(append(), append());
      await pass(rig, secondMs);
    }
    expect(rig.records.map(({ at }) => (at - beganMs) / secondMs)).toEqual([0, 60, 120]);
    await pass(rig, 10 * minuteMs);
    await rig.commit(append());
    await rig.settle();
    expect(rig.records.map(({ at }) => (at - beganMs) / secondMs)).toEqual([0, 60, 120, 750]);
    expect(new Set(rig.records.map(({ requestId }) => requestId)).size).toBe(1);
  });

  test('has one record of a refusal, and of a stream that has nothing to bring', async () => {
    const rig = await rigWithMaster();
    const refused = rig.followLedger(delegate);
    await refused.done;
    await rig.commit(closeLedger({ actorId: buyer }));
    await rig.followLedger(buyer, { afterSeq: BigInt(rig.chain.events.length - 1) }).done;
    await rig.settle();
    expect(refused.error?.code).toBe('not_found');
    expect(rig.records.map(({ actorId, responseStatus }) => [actorId, responseStatus])).toEqual([
      [delegate, 404],
      [buyer, 204],
    ]);
  });
});

describe('a stream that begins ahead of what its node has shown', () => {
  /** The node shows nothing behind seq 2 until `catchUp` is called. A follower keeps its tail open. */
  async function laggingRig() {
    let isBusy = false;
    const rig = await rigWithMaster({ limiter: { delayMs: () => (isBusy ? 100 : 0) } });
    rig.followLedger(buyer);
    await rig.settle();
    isBusy = true;
    await rig.commit(append(), append(), append());
    await rig.settle();
    const catchUp = async (): Promise<void> => {
      isBusy = false;
      await pass(rig, secondMs);
    };
    return { rig, catchUp };
  }

  test('gets heartbeats with the newest event that was shown, and is caught up when its place is reached', async () => {
    const { rig, catchUp } = await laggingRig();
    const stream = rig.followLedger(buyer, { afterSeq: 5n });
    await pass(rig, 31 * secondMs);
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
    await pass(rig, 15 * secondMs);
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
    await pass(rig, 15 * secondMs);
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
      await pass(rig, 15 * secondMs);
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
    const store = (inner: LedgerStore): LedgerStore =>
      storeWith(inner, {
        read: async (id, from, limit, charsMax) => {
          if (isHeld && from + limit > 4) await held;
          return inner.read(id, from, limit, charsMax);
        },
      });
    const rig = await rigWithMaster({ store });
    await rig.commit(grant({ access: 'read' }));
    rig.followLedger(buyer);
    await rig.settle();
    isHeld = true;
    await rig.commit(append(), append());
    const streams = [rig.followLedger(delegate), rig.followMaster(delegate)];
    // Stored grants are compared a second after the beginning, and a minute later.
    await pass(rig, 2 * secondMs);
    const revoked = await rig.commit(revoke());
    await rig.commit(append());
    await pass(rig, 30 * secondMs);
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
    const store = (inner: LedgerStore): LedgerStore =>
      storeWith(inner, {
        read: async (...given) => {
          if (hanging.has('read')) await held;
          return inner.read(...given);
        },
        head: async (id) => {
          if (hanging.has('head')) await held;
          return inner.head(id);
        },
      });
    const rig = await rigWithMaster({ store });
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
    await pass(rig, 2 * secondMs);
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
    const store = (inner: LedgerStore): LedgerStore =>
      storeWith(inner, {
        read: async (...given) => {
          if (isFailing) throw new LedgerError('unavailable', 'the store does not answer');
          return (await inner.read(...given)).map((entry) => (entry.seq === 3 ? { ...entry, row: '{' } : entry));
        },
        readScope: async (...given) => {
          if (isFailing) throw new LedgerError('unavailable', 'the store does not answer');
          return inner.readScope(...given);
        },
      });
    const rig = await rigWithMaster({ ...options, store });
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
    await pass(rig, 16 * secondMs);
    expect([stream.shown, stream.error]).toEqual([['caughtUp'], null]);
    fail(false);
    await pass(rig, 15 * secondMs);
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
    await pass(rig, 16 * secondMs);
    expect([stream.shown, stream.error]).toEqual([[], null]);
    fail(false);
    await pass(rig, 15 * secondMs);
    expect([stream.shown, stream.error]).toEqual([['heartbeat'], null]);
  });
});

describe('a follower', () => {
  test('that has no event yet is not told to resume behind one', async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const store = (inner: LedgerStore): LedgerStore =>
      storeWith(inner, {
        read: async (...given) => {
          await held;
          return inner.read(...given);
        },
      });
    const rig = await rigWithMaster({ store });
    await rig.commit(append());
    const stream = rig.followMaster(buyer, { afterMasterSeq: -1n });
    await pass(rig, 15 * secondMs);
    letGo();
    await rig.settle();
    expect(stream.shown).toEqual(['heartbeat', 2, 3, 'caughtUp']);
    expect(stream.answers[0]).toMatchObject({ message: { value: { head: { seq: 3n, masterSeq: 1n } } } });
    expect(stream.answers.map(({ resumeAfter }) => resumeAfter)).toEqual([undefined, 0n, 1n, 1n]);
  });

  test('gets the past, is told once that it is caught up, and then gets each event', async () => {
    const rig = await rigWithMaster();
    const stream = rig.followLedger(buyer, { afterSeq: 0n });
    await rig.settle();
    await rig.commit(append(), append());
    await rig.settle();
    expect(stream.shown).toEqual([1, 2, 'caughtUp', 3, 4]);
  });

  test('gets a heartbeat every 15 s, with the newest event and the time', async () => {
    const rig = await rigWithMaster();
    const stream = rig.followLedger(buyer);
    await rig.settle();
    await pass(rig, 31 * secondMs);
    expect(stream.shown).toEqual(['caughtUp', 'heartbeat', 'heartbeat']);
    const head = { seq: 2n, hash: rig.chain.events[2]?.hash };
    expect(stream.answers[2]).toMatchObject({ message: { value: { head } }, resumeAfter: 2n });
  });

  test('of a master gets its events alone, and ends well behind its closing', async () => {
    const rig = await rigWithMaster();
    await rig.commit(createMaster({ masterId: siblingId, businessRef: 'PO-2' }));
    const stream = rig.followMaster(buyer, { afterMasterSeq: 0n });
    await rig.settle();
    await rig.commit(append({ masterId: siblingId }), append(), closeMaster(), append({ masterId: siblingId }));
    await stream.done;
    expect([stream.shown, stream.error, rig.ended]).toEqual([['caughtUp', 5, 6], null, ['closed']]);
  });

  test('of single masters that is far behind is told of nothing that the tail has not read', async () => {
    let isHeld = false;
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    // The tail reads by seqs and waits; the past is read along scopes and does not.
    const store = (inner: LedgerStore): LedgerStore =>
      storeWith(inner, {
        read: async (id, from, limit, charsMax) => {
          if (isHeld && from >= 1_205) await held;
          return inner.read(id, from, limit, charsMax);
        },
      });
    const rig = await rigWithMaster({ store });
    await rig.commit(createMaster({ masterId: siblingId, businessRef: 'PO-2' }), grant({ access: 'read' }));
    for (let n = 0; n < 1_200; n += 100)
      await rig.commit(...Array.from({ length: 100 }, () => append({ masterId: siblingId })));
    // A party's tail is at the head, and reads on from there.
    rig.followLedger(buyer);
    await rig.settle();
    isHeld = true;
    await rig.commit(revoke(), append());
    const stream = rig.followLedger(delegate, { afterSeq: 0n });
    await rig.settle();
    letGo();
    await rig.settle();
    expect(Math.max(-1, ...stream.toldSeqs)).toBeLessThan(1_205);
    expect(stream.error).not.toBeNull();
  });

  test('ends with its own error while a read is under way, and not with that of the read', async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    let isHeld = false;
    const store = (inner: LedgerStore): LedgerStore =>
      storeWith(inner, {
        read: async (...given) => {
          if (isHeld) await held;
          return inner.read(...given);
        },
      });
    const rig = await rigWithMaster({ store });
    isHeld = true;
    const stream = rig.followLedger(buyer, { afterSeq: -1n });
    await rig.settle();
    rig.revokeKey(buyer);
    letGo();
    await stream.done;
    expect([stream.error?.code, rig.ended]).toEqual(['invalid_api_key', ['credential']]);
  });

  test('that leaves is counted as gone, and its place is free again', async () => {
    const rig = await rigWithMaster();
    const stream = rig.followLedger(buyer);
    await rig.settle();
    expect(rig.followers.count).toBe(1);
    stream.leave();
    await stream.done;
    expect([rig.ended, rig.followers.count, rig.clock.timers]).toEqual([['caller_gone'], 0, 0]);
  });

  const credentialError = new LedgerError('unavailable', 'not checked');
  test.each<[string, number, (stream: RigStream) => unknown, FollowEnd]>([
    ['whose connection ends after it took nothing for long', 25, (stream) => stream.leave(), 'stalled'],
    ['that leaves before', 5, (stream) => stream.leave(), 'caller_gone'],
    ['whose credential could not be checked', 5, (stream) => stream.call?.endWith(credentialError), 'credential'],
  ])('%s is counted as such', async (_, untakenS, end, reason) => {
    const rig = await rigWithMaster();
    let letGo = (): void => {};
    const take = () =>
      new Promise<void>((resolve) => {
        letGo = resolve;
      });
    const beganMs = performance.now();
    const stream = rig.followLedger(buyer, {}, take);
    await rig.settle();
    const monotonic = vi.spyOn(performance, 'now').mockReturnValue(beganMs + untakenS * secondMs);
    try {
      end(stream);
      // A transport says so too if its connection ends.
      letGo();
      await stream.done;
    } finally {
      monotonic.mockRestore();
    }
    expect(rig.ended).toEqual([reason]);
  });

  test('has its heartbeats at its own times, whenever others have theirs', async () => {
    const rig = await rigWithMaster();
    const heartbeatsOf = ({ shown }: { readonly shown: readonly (number | string)[] }) =>
      shown.filter((one) => one === 'heartbeat').length;
    const first = rig.followLedger(buyer);
    await pass(rig, 5 * secondMs);
    const second = rig.followLedger(buyer);
    const counts: number[][] = [];
    for (let time = 0; time < 4; time += 1) {
      await pass(rig, 6 * secondMs);
      counts.push([heartbeatsOf(first), heartbeatsOf(second)]);
    }
    // 11, 17, 23 and 29 s behind the beginning of the first one.
    expect(counts).toEqual([
      [0, 0],
      [1, 0],
      [1, 1],
      [1, 1],
    ]);
    await pass(rig, 3 * secondMs);
    expect([heartbeatsOf(first), heartbeatsOf(second)]).toEqual([2, 1]);
  });

  test('that resumes behind the last event of a master has no message if the ledger was closed since', async () => {
    const rig = await rigWithMaster();
    const last = await rig.commit(append());
    await rig.commit(closeLedger({ actorId: buyer }));
    const stream = rig.followMaster(buyer, { afterMasterSeq: BigInt(last.master?.seq ?? -1) });
    await stream.done;
    expect([stream.shown, stream.error, rig.ended]).toEqual([[], null, ['closed']]);
  });

  test('of one event ends behind it, however far behind the head it is', async () => {
    const rig = await rigWithMaster();
    const event = await rig.commit(append());
    await rig.commit(createMaster({ masterId: siblingId, businessRef: 'PO-2' }));
    for (let n = 0; n < 1_100; n += 100)
      await rig.commit(...Array.from({ length: 100 }, () => append({ masterId: siblingId })));
    await rig.commit(append());
    const stream = rig.followMaster(buyer, { afterMasterSeq: -1n, eventId: event.id });
    await rig.settle();
    expect([stream.shown, stream.hasEnded, rig.ended]).toEqual([[event.seq], true, ['filter_end']]);
  });

  test('is ended with a hint when to come back if its node stops', async () => {
    const rig = await rigWithMaster();
    const stream = rig.followMaster(buyer);
    await rig.settle();
    rig.followers.drain();
    await stream.done;
    expect(stream.error).toMatchObject({ code: 'unavailable', details: { retry_after_ms: expect.any(Number) } });
    expect([rig.ended, rig.followers.count]).toEqual([['draining'], 0]);
    const refused = rig.followLedger(buyer);
    await refused.done;
    expect(refused.error?.code).toBe('unavailable');
  });

  test('of one master does not look at the masters of others', async () => {
    const rig = await rigWithMaster();
    await rig.commit(createMaster({ masterId: siblingId, businessRef: 'PO-2' }), grant({ access: 'read' }));
    const stream = rig.followLedger(delegate, { afterSeq: -1n });
    await rig.settle();
    await rig.commit(append({ masterId: siblingId }), append({ masterId }));
    await rig.settle();
    expect(stream.shown).toEqual([0, 1, 2, 4, 'caughtUp', 6]);
  });
});
