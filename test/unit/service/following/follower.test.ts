import { describe, expect, test, vi } from 'vitest';
import { batchBytesMax, largestBatchEvents } from '../../../../src/actors/bounds.ts';
import { LedgerError } from '../../../../src/domain/errors.ts';
import type { FollowEnd } from '../../../../src/service/following/follow-meter.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';
import { charsOf, pageCharsMax } from '../../../../src/store/pages.ts';
import {
  append,
  buyer,
  closeLedger,
  closeMaster,
  createMaster,
  delegate,
  grant,
  masterId,
  revoke,
  siblingId,
} from '../../../support/commands.ts';
import { FollowersRig, type RigStream } from '../../../support/followers-rig.ts';
import { beforeCalls, storeWith } from '../../../support/world.ts';

const secondMs = 1_000;
const minuteMs = 60 * secondMs;

/** A store that has the events from a seq on, and does not list them in their scopes yet. */
const unlistedFrom = (first: () => number) => (inner: LedgerStore) =>
  storeWith(inner, {
    readScope: async (...given) => {
      const { entries, missing } = await inner.readScope(...given);
      return { entries: entries.filter(({ seq }) => seq < first()), missing };
    },
    scopeSeqs: async (...given) => (await inner.scopeSeqs(...given)).filter((seq) => seq < first()),
  });

describe('the access history of a follower', () => {
  test('has one record when it begins, and none for heartbeats', async () => {
    const rig = await FollowersRig.withMaster();
    const stream = rig.followLedger(buyer);
    await rig.settle();
    expect(rig.records).toMatchObject([{ actorId: buyer, responseStatus: 200, at: rig.clock.now() }]);
    await rig.pass(5 * minuteMs);
    expect(stream.shown.filter((shown) => shown === 'heartbeat').length).toBeGreaterThan(10);
    expect(rig.records).toHaveLength(1);
    stream.leave();
    await stream.done;
    expect(rig.records).toHaveLength(1);
  });

  test('has one more for each minute in which it delivers, however many events', async () => {
    const rig = await FollowersRig.withMaster();
    const beganMs = rig.clock.now();
    rig.followLedger(buyer);
    await rig.settle();
    for (let second = 0; second < 150; second += 1) {
      await rig.commit(append(), append());
      await rig.pass(secondMs);
    }
    expect(rig.records.map(({ at }) => (at - beganMs) / secondMs)).toEqual([0, 60, 120]);
    await rig.pass(10 * minuteMs);
    await rig.commit(append());
    await rig.settle();
    expect(rig.records.map(({ at }) => (at - beganMs) / secondMs)).toEqual([0, 60, 120, 750]);
    expect(new Set(rig.records.map(({ requestId }) => requestId)).size).toBe(1);
  });

  test('has one record of a refusal, and of a stream that has nothing to bring', async () => {
    const rig = await FollowersRig.withMaster();
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

describe('a follower', () => {
  test('that has no event yet is not told to resume behind one', async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const rig = await FollowersRig.withMaster({ store: (inner) => beforeCalls(inner, { read: () => held }) });
    await rig.commit(append());
    const stream = rig.followMaster(buyer, { afterMasterSeq: -1n });
    await rig.pass(15 * secondMs);
    letGo();
    await rig.settle();
    expect(stream.shown).toEqual(['heartbeat', 2, 3, 'caughtUp']);
    expect(stream.answers[0]).toMatchObject({ message: { value: { head: { seq: 3n, masterSeq: 1n } } } });
    expect(stream.answers.map(({ resumeAfter }) => resumeAfter)).toEqual([undefined, 0n, 1n, 1n]);
  });

  test('gets the past, is told once that it is caught up, and then gets each event', async () => {
    const rig = await FollowersRig.withMaster();
    const stream = rig.followLedger(buyer, { afterSeq: 0n });
    await rig.settle();
    await rig.commit(append(), append());
    await rig.settle();
    expect(stream.shown).toEqual([1, 2, 'caughtUp', 3, 4]);
  });

  test('gets a heartbeat every 15 s, with the newest event and the time', async () => {
    const rig = await FollowersRig.withMaster();
    const stream = rig.followLedger(buyer);
    await rig.settle();
    await rig.pass(31 * secondMs);
    expect(stream.shown).toEqual(['caughtUp', 'heartbeat', 'heartbeat']);
    const head = { seq: 2n, hash: rig.chain.events[2]?.hash };
    expect(stream.answers[2]).toMatchObject({ message: { value: { head } }, resumeAfter: 2n });
  });

  test('of a master gets its events alone, and ends well behind its closing', async () => {
    const rig = await FollowersRig.withMaster();
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
    const store = (inner: LedgerStore) => beforeCalls(inner, { read: (_, from) => isHeld && from >= 1_205 && held });
    const rig = await FollowersRig.withMaster({ store });
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
    const rig = await FollowersRig.withMaster({ store: (inner) => beforeCalls(inner, { read: () => isHeld && held }) });
    isHeld = true;
    const stream = rig.followLedger(buyer, { afterSeq: -1n });
    await rig.settle();
    rig.revokeKey(buyer);
    letGo();
    await stream.done;
    expect([stream.error?.code, rig.ended]).toEqual(['invalid_api_key', ['credential']]);
  });

  test('that leaves is counted as gone, and its place is free again', async () => {
    const rig = await FollowersRig.withMaster();
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
    const rig = await FollowersRig.withMaster();
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
    const rig = await FollowersRig.withMaster();
    const heartbeatsOf = ({ shown }: { readonly shown: readonly (number | string)[] }) =>
      shown.filter((one) => one === 'heartbeat').length;
    const first = rig.followLedger(buyer);
    await rig.pass(5 * secondMs);
    const second = rig.followLedger(buyer);
    const counts: number[][] = [];
    for (let time = 0; time < 4; time += 1) {
      await rig.pass(6 * secondMs);
      counts.push([heartbeatsOf(first), heartbeatsOf(second)]);
    }
    // 11, 17, 23 and 29 s behind the beginning of the first one.
    expect(counts).toEqual([
      [0, 0],
      [1, 0],
      [1, 1],
      [1, 1],
    ]);
    await rig.pass(3 * secondMs);
    expect([heartbeatsOf(first), heartbeatsOf(second)]).toEqual([2, 1]);
  });

  test('that resumes behind the last event of a master has no message if the ledger was closed since', async () => {
    const rig = await FollowersRig.withMaster();
    const last = await rig.commit(append());
    await rig.commit(closeLedger({ actorId: buyer }));
    const stream = rig.followMaster(buyer, { afterMasterSeq: BigInt(last.master?.seq ?? -1) });
    await stream.done;
    expect([stream.shown, stream.error, rig.ended]).toEqual([[], null, ['closed']]);
  });

  test('of one event ends behind it, however far behind the head it is', async () => {
    const rig = await FollowersRig.withMaster();
    const event = await rig.commit(append());
    await rig.commit(createMaster({ masterId: siblingId, businessRef: 'PO-2' }));
    for (let n = 0; n < 1_100; n += 100)
      await rig.commit(...Array.from({ length: 100 }, () => append({ masterId: siblingId })));
    await rig.commit(append());
    const stream = rig.followMaster(buyer, { afterMasterSeq: -1n, eventId: event.id });
    await rig.settle();
    expect([stream.shown, stream.hasEnded, rig.ended]).toEqual([[event.seq], true, ['filter_end']]);
  });

  test('resumes behind an event of the newest batch that the scope of its master does not list yet', async () => {
    let first = Number.POSITIVE_INFINITY;
    const rig = await FollowersRig.withMaster({ store: unlistedFrom(() => first) });
    await rig.commit(createMaster({ masterId: siblingId, businessRef: 'PO-2' }));
    const batch = Array.from({ length: largestBatchEvents - 1 }, () => append({ masterId: siblingId }));
    const last = await rig.commit(append());
    await rig.commit(...batch);
    first = last.seq;
    const [place, behind] = [0n, 1n].map((more) => more + BigInt(last.master?.seq ?? -1));
    const [stream, refused] = [place, behind].map((afterMasterSeq) => rig.followMaster(buyer, { afterMasterSeq }));
    await rig.settle();
    const { seq } = await rig.commit(append());
    await rig.settle();
    expect([stream?.error, stream?.shown]).toEqual([null, ['caughtUp', seq]]);
    expect(stream?.answers).toMatchObject([{ message: { value: { head: { hash: last.hash } } } }, {}]);
    expect(refused?.error).toMatchObject({ code: 'invalid_argument', details: { field: 'after_master_seq' } });
  });

  test('for new events only begins behind the newest event, also if its scope does not list it yet', async () => {
    let first = Number.POSITIVE_INFINITY;
    const rig = await FollowersRig.withMaster({ store: unlistedFrom(() => first) });
    await rig.commit(createMaster({ masterId: siblingId, businessRef: 'PO-2' }));
    const last = await rig.commit(append());
    await rig.commit(...Array.from({ length: largestBatchEvents - 1 }, () => append({ masterId: siblingId })));
    first = last.seq;
    const stream = rig.followMaster(buyer);
    await rig.settle();
    const { seq } = await rig.commit(append());
    await rig.settle();
    expect(stream.shown).toEqual(['caughtUp', seq]);
    const [caughtUp, event] = stream.answers;
    expect(caughtUp).toMatchObject({ message: { value: { head: { hash: last.hash } } } });
    expect(event).toMatchObject({ message: { value: { integrity: { issues: [] } } } });
  });

  test('that names an event that does not exist has no more read than the newest batch can be', async () => {
    let chars = 0;
    const store = (inner: LedgerStore) =>
      storeWith(inner, {
        read: async (...given) => {
          const entries = await inner.read(...given);
          chars += charsOf(entries);
          return entries;
        },
      });
    const rig = await FollowersRig.withMaster({ store });
    const payload = JSON.stringify({ note: 'x'.repeat(200 * 1024) });
    await rig.commit(...Array.from({ length: 30 }, () => append({ payload })));
    const refused = rig.followMaster(buyer, { afterMasterSeq: 100n });
    await rig.settle();
    expect(refused.error).toMatchObject({ code: 'invalid_argument', details: { field: 'after_master_seq' } });
    expect(chars).toBeGreaterThan(batchBytesMax);
    expect(chars).toBeLessThan(4 * pageCharsMax);
  });

  test('that is far behind gets the events of the newest batch that their scopes do not list yet', async () => {
    let first = Number.POSITIVE_INFINITY;
    const rig = await FollowersRig.withMaster({ store: unlistedFrom(() => first) });
    await rig.commit(createMaster({ masterId: siblingId, businessRef: 'PO-2' }));
    for (let n = 0; n < 1_100; n += 100)
      await rig.commit(...Array.from({ length: 100 }, () => append({ masterId: siblingId })));
    const { seq } = await rig.commit(append());
    await rig.commit(...Array.from({ length: largestBatchEvents - 1 }, () => append({ masterId: siblingId })));
    first = seq;
    const stream = rig.followMaster(buyer, { afterMasterSeq: -1n });
    await rig.settle();
    expect(stream.shown).toEqual([2, seq, 'caughtUp']);
  });

  test('is ended with a hint when to come back if its node stops', async () => {
    const rig = await FollowersRig.withMaster();
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
    const rig = await FollowersRig.withMaster();
    await rig.commit(createMaster({ masterId: siblingId, businessRef: 'PO-2' }), grant({ access: 'read' }));
    const stream = rig.followLedger(delegate, { afterSeq: -1n });
    await rig.settle();
    await rig.commit(append({ masterId: siblingId }), append({ masterId }));
    await rig.settle();
    expect(stream.shown).toEqual([0, 1, 2, 4, 'caughtUp', 6]);
  });
});
