import { expect, test } from 'vitest';
import { FollowedLedger } from '../../../../src/service/following/followed-ledger.ts';
import { type FollowedPages, pageSeqs } from '../../../../src/service/following/followed-pages.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';
import { settled } from '../../../support/clock.ts';
import { append, buyer, delegate, grant, ledgerId, revoke, supplier } from '../../../support/commands.ts';
import { FollowersRig } from '../../../support/followers-rig.ts';
import { beforeCalls, storeWith } from '../../../support/world.ts';

/** A store whose reads fail while `isFailing` says so. */
const failingReads = (isFailing: () => boolean) => (inner: LedgerStore) =>
  beforeCalls(inner, {
    read: () => {
      if (isFailing()) throw new Error('the store does not answer');
    },
  });

/** A store that does not show the events from a seq on yet. */
const hiddenFrom = (first: () => number) => (inner: LedgerStore) =>
  storeWith(inner, {
    read: async (...given) => (await inner.read(...given)).filter(({ seq }) => seq < first()),
  });

test('each new event is read once for all followers of the ledger', async () => {
  const rig = await FollowersRig.withMaster();
  const streams = Array.from({ length: 50 }, (_, n) => rig.followLedger(n % 2 === 0 ? buyer : supplier));
  await rig.settle();
  const before = rig.counts.eventsRead;
  for (let n = 0; n < 10; n += 1) await rig.commit(append());
  await rig.settle();
  // The first read of the page takes what stands before the new events in it.
  expect(rig.counts.eventsRead - before).toBe(10 + 3);
  for (const { shown } of streams) expect(shown).toEqual(['caughtUp', 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  expect(rig.counts.sent).toBe(500);
});

test('the newest event is read once for all followers that begin behind it', async () => {
  let reads = 0;
  const rig = await FollowersRig.withMaster({ store: (inner) => beforeCalls(inner, { read: () => void reads++ }) });
  const streams = Array.from({ length: 20 }, () => rig.followLedger(buyer));
  await rig.settle();
  const hash = rig.chain.events.at(-1)?.hash;
  for (const { answers } of streams)
    expect(answers).toMatchObject([{ message: { case: 'caughtUp', value: { head: { hash } } } }]);
  expect(reads).toBe(1);
});

test('followers that come back at once share the reads of the past', async () => {
  const rig = await FollowersRig.withMaster();
  await rig.commit(...Array.from({ length: 197 }, () => append()));
  const streams = Array.from({ length: 20 }, () => rig.followLedger(buyer, { afterSeq: -1n }));
  await rig.settle();
  for (const { shown } of streams) expect(shown).toHaveLength(201);
  expect(rig.counts).toMatchObject({ eventsRead: 200, pagesRead: Math.ceil(200 / pageSeqs) });
});

test('a tail whose read fails tries again, and leaves nothing out', async () => {
  let isFailing = false;
  const rig = await FollowersRig.withMaster({ store: failingReads(() => isFailing) });
  const stream = rig.followLedger(buyer);
  await rig.settle();
  isFailing = true;
  await rig.commit(append(), append());
  await rig.settle();
  expect(stream.shown).toEqual(['caughtUp']);
  isFailing = false;
  await rig.clock.advance(1_000);
  await rig.settle();
  expect(stream.shown).toEqual(['caughtUp', 3, 4]);
});

test('an event that the store does not show yet is waited for', async () => {
  let hidden = Number.POSITIVE_INFINITY;
  const rig = await FollowersRig.withMaster({ store: hiddenFrom(() => hidden) });
  await rig.commit(grant({ access: 'read' }));
  const [stream, granted] = [rig.followLedger(buyer), rig.followLedger(delegate)];
  await rig.settle();
  hidden = 5;
  await rig.commit(append(), append());
  await rig.settle();
  for (const { shown } of [stream, granted]) expect(shown).toEqual(['caughtUp', 4]);
  hidden = Number.POSITIVE_INFINITY;
  await rig.clock.advance(1_000);
  await rig.settle();
  for (const { shown } of [stream, granted]) expect(shown).toEqual(['caughtUp', 4, 5]);
});

/** With it the rows of a page are larger than what one read of the store brings. */
const largePayload = JSON.stringify({ note: 'x'.repeat(20 * 1024) });

test('a new event is shown at once if its page is not in memory and takes several reads', async () => {
  const rig = await FollowersRig.withMaster();
  const payload = largePayload;
  await rig.commit(grant({ access: 'read' }), ...Array.from({ length: pageSeqs - 6 }, () => append({ payload })));
  const [stream, granted] = [rig.followLedger(buyer), rig.followLedger(delegate)];
  await rig.settle();
  const { seq } = await rig.commit(append());
  const ended = await rig.commit(revoke());
  await rig.settle();
  expect(rig.counts.pagesRead).toBeGreaterThan(1);
  expect(stream.shown).toEqual(['caughtUp', seq, ended.seq]);
  expect([granted.shown, granted.error]).toMatchObject([['caughtUp'], { code: 'permission_denied' }]);
});

/** A store that has the pages of a rig drop all that they hold before each of its reads, of which it allows `max`. */
const dropping = (pagesOf: () => FollowedPages | undefined, max: number) => {
  const counts = { reads: 0 };
  const store = (inner: LedgerStore) =>
    beforeCalls(inner, {
      read: () => {
        const pages = pagesOf();
        if (pages === undefined) return;
        counts.reads += 1;
        if (counts.reads > max) throw new Error('too many reads');
        pages.add(pages.use(`other ${counts.reads}`, 0), null, 1024 * 1024);
      },
    });
  return { counts, store };
};

test('the tail and a follower get an event although its page is dropped before each of its reads', async () => {
  let pages: FollowedPages | undefined;
  const { counts, store } = dropping(() => pages, 12);
  const rig = await FollowersRig.withMaster({ store });
  // A read brings three such events. Once the page is dropped, it is not read to its end: it would fill the memory.
  const payload = JSON.stringify({ note: 'x'.repeat(100 * 1024) });
  await rig.commit(...Array.from({ length: pageSeqs - 5 }, () => append({ payload })));
  const last = rig.chain.events.length - 1;
  const stream = rig.followLedger(buyer);
  await rig.settle();
  pages = rig.parts.pages;
  const { seq } = await rig.commit(append({ payload }));
  await rig.settle();
  expect([stream.shown, stream.error]).toEqual([['caughtUp', seq], null]);
  counts.reads = 0;
  const behind = rig.followLedger(buyer, { afterSeq: BigInt(last - 1) });
  await rig.settle();
  expect([behind.shown, behind.error]).toEqual([[last, seq, 'caughtUp'], null]);
});

test('an event that the store does not show is waited for with a pause if its page is dropped, too', async () => {
  let pages: FollowedPages | undefined;
  let hidden = Number.POSITIVE_INFINITY;
  const { counts, store } = dropping(() => pages, 20);
  const rig = await FollowersRig.withMaster({ store: (inner) => store(hiddenFrom(() => hidden)(inner)) });
  const payload = largePayload;
  await rig.commit(...Array.from({ length: pageSeqs - 5 }, () => append({ payload })));
  const stream = rig.followLedger(buyer);
  await rig.settle();
  pages = rig.parts.pages;
  hidden = rig.chain.events.length;
  const { seq } = await rig.commit(append({ payload }));
  await rig.settle();
  expect(stream.shown).toEqual(['caughtUp']);
  expect(counts.reads).toBeLessThan(10);
  hidden = Number.POSITIVE_INFINITY;
  counts.reads = 0;
  await rig.clock.advance(1_000);
  await rig.settle();
  expect(stream.shown).toEqual(['caughtUp', seq]);
});

test('an event that the store does not show, but earlier ones of its page, is waited for with a pause', async () => {
  let hidden = Number.POSITIVE_INFINITY;
  const rig = await FollowersRig.withMaster({ store: hiddenFrom(() => hidden) });
  const stream = rig.followLedger(buyer);
  await rig.settle();
  hidden = 3;
  await rig.commit(append());
  await rig.settle();
  // One read of the earlier events, and one that brings nothing.
  expect([stream.shown, rig.counts.pagesRead, rig.counts.eventsRead]).toEqual([['caughtUp'], 2, 3]);
  hidden = Number.POSITIVE_INFINITY;
  await rig.clock.advance(1_000);
  await rig.settle();
  expect(stream.shown).toEqual(['caughtUp', 3]);
});

test('the newest event that could not be read is read anew for the next reader', async () => {
  let isFailing = true;
  const rig = await FollowersRig.withMaster({ store: failingReads(() => isFailing) });
  const ledger = new FollowedLedger(ledgerId, rig.parts);
  await ledger.open();
  await expect(async () => ledger.newest()).rejects.toThrow('the store does not answer');
  isFailing = false;
  expect(await ledger.newest()).toMatchObject({ seq: 2 });
});

test('an event that is lost at the end of a page does not have the next event read twice', async () => {
  const lost = pageSeqs - 1;
  const store = (inner: LedgerStore): LedgerStore =>
    storeWith(inner, {
      read: async (id, from, limit) =>
        (await inner.read(id, from, limit + 1)).filter(({ seq }) => seq !== lost).slice(0, limit),
    });
  const rig = await FollowersRig.withMaster({ store });
  await rig.commit(...Array.from({ length: pageSeqs }, () => append()));
  const stored = rig.chain.events.length - 1;
  const stream = rig.followLedger(buyer, { afterSeq: -1n });
  await rig.settle();
  const seqs = rig.chain.events.map(({ seq }) => seq).filter((seq) => seq !== lost);
  expect(stream.shown).toEqual([...seqs, 'caughtUp']);
  const issuesOf = (at: number): unknown => {
    const message = stream.answers[at]?.message;
    return message?.case === 'event' ? message.value.integrity?.issues?.map(({ type }) => type) : null;
  };
  expect([issuesOf(lost - 1), issuesOf(lost), issuesOf(lost + 1)]).toEqual([[], ['missing_event'], []]);
  expect(rig.counts).toEqual({ pagesRead: 2, eventsRead: stored, sent: stored });
});

test('a ledger that nobody follows any more is read no more, and its pages are dropped', async () => {
  const rig = await FollowersRig.withMaster();
  const stream = rig.followLedger(buyer, { afterSeq: -1n });
  await rig.settle();
  stream.leave();
  await stream.done;
  const before = rig.counts.pagesRead;
  await rig.commit(append());
  await rig.clock.advance(5_000);
  expect([rig.counts.pagesRead - before, rig.clock.timers]).toEqual([0, 0]);
});

test('events wait while appends need the processor, in steps, and the end of an access does not', async () => {
  let isBusy = false;
  const costs: number[] = [];
  const limiter = {
    delayMs: (costMs: number) => {
      costs.push(costMs);
      return isBusy ? 100 : 0;
    },
  };
  const rig = await FollowersRig.withMaster({ limiter });
  await rig.commit(grant({ access: 'read' }));
  const [party, ended] = [rig.followLedger(buyer), rig.followLedger(delegate)];
  await rig.settle();
  isBusy = true;
  await rig.commit(append(), append());
  await rig.commit(revoke());
  await rig.settle();
  expect(party.shown).toEqual(['caughtUp']);
  expect(ended.shown).toEqual(['caughtUp']);
  expect(ended.error).toMatchObject({ code: 'permission_denied' });
  isBusy = false;
  await rig.clock.advance(100);
  await rig.settle();
  expect(party.shown).toEqual(['caughtUp', 4, 5, 6]);
  expect(Math.max(...costs)).toBeLessThanOrEqual(5);
});

test('while appends need the processor, events are not read for parties, whose access nothing ends', async () => {
  let isBusy = false;
  const rig = await FollowersRig.withMaster({ limiter: { delayMs: () => (isBusy ? 100 : 0) } });
  const stream = rig.followLedger(buyer);
  await rig.settle();
  const before = rig.counts.eventsRead;
  isBusy = true;
  await rig.commit(append());
  await rig.clock.advance(250);
  await rig.commit(append());
  await rig.settle();
  expect([stream.shown, rig.counts.eventsRead - before]).toEqual([['caughtUp'], 0]);
  isBusy = false;
  await rig.clock.advance(50);
  await rig.settle();
  expect(stream.shown).toEqual(['caughtUp', 3, 4]);
  expect(rig.lags).toEqual([300, 50]);
});

test('the lag of a stream counts from when it has caught up: the past has none', async () => {
  const rig = await FollowersRig.withMaster();
  const first = rig.followLedger(buyer);
  await rig.settle();
  await rig.commit(append(), append());
  await rig.settle();
  await rig.clock.advance(600_000);
  const late = rig.followLedger(supplier, { afterSeq: -1n });
  await rig.settle();
  expect(rig.lags).toEqual([0, 0]);
  await rig.commit(append());
  await rig.settle();
  expect(rig.lags).toEqual([0, 0, 0, 0]);
  const events = ({ shown }: typeof first) => shown.filter((one) => typeof one === 'number');
  expect([events(first), events(late)]).toEqual([
    [3, 4, 5],
    [0, 1, 2, 3, 4, 5],
  ]);
});

/** As many as are woken up in more than one group, if each gets the events of a page. */
const inGroups = 70;

test('followers get all events of a page at once, in groups between which appends go on', async () => {
  const costs: number[] = [];
  const limiter = {
    delayMs: (costMs: number) => {
      costs.push(costMs);
      return 0;
    },
  };
  const rig = await FollowersRig.withMaster({ limiter });
  const streams = Array.from({ length: inGroups }, () => rig.followLedger(buyer));
  await rig.settle();
  await rig.commit(...Array.from({ length: 2 * pageSeqs }, () => append()));
  await rig.settle();
  const seqs = Array.from({ length: 2 * pageSeqs }, (_, at) => at + 3);
  for (const { shown } of streams) expect(shown).toEqual(['caughtUp', ...seqs]);
  expect(Math.max(...costs)).toBeLessThanOrEqual(5);
  // Three pages, each with a read, and more than one group for the two long ones.
  expect(costs.length).toBeGreaterThan(3 + 2 * 2);
});

test('a read that fails while groups of followers wait holds nothing back from them, and leaves nothing out', async () => {
  let turns = Number.POSITIVE_INFINITY;
  let isFailing = false;
  const delayMs = () => {
    turns -= 1;
    return turns < 0 ? 100 : 0;
  };
  const rig = await FollowersRig.withMaster({ limiter: { delayMs }, store: failingReads(() => isFailing) });
  await rig.commit(grant({ access: 'read' }));
  const streams = Array.from({ length: inGroups }, (_, at) => rig.followLedger(at === 0 ? delegate : buyer));
  await rig.settle();
  // One for the read, and one for the first group.
  turns = 2;
  await rig.commit(...Array.from({ length: pageSeqs - 4 }, () => append()));
  await rig.settle();
  const page = Array.from({ length: pageSeqs - 4 }, (_, at) => at + 4);
  const waiting = streams.filter(({ shown }) => shown.length === 1);
  expect(waiting.length).toBeGreaterThan(1);
  expect(waiting.length).toBeLessThan(inGroups);
  for (const { shown } of streams) expect([['caughtUp'], ['caughtUp', ...page]]).toContainEqual(shown);
  // The delegate is one of the streams; its events are read as they come.
  const left = waiting.find((stream) => stream !== streams[0]);
  left?.leave();
  const late = rig.followLedger(buyer);
  await rig.settle();
  isFailing = true;
  await rig.commit(append());
  await rig.clock.advance(100);
  await rig.settle();
  const staying = streams.filter((stream) => stream !== left);
  for (const { shown } of staying) expect(shown).toEqual(['caughtUp', ...page]);
  isFailing = false;
  turns = Number.POSITIVE_INFINITY;
  await rig.clock.advance(1_000);
  await rig.settle();
  for (const { shown } of staying) expect(shown).toEqual(['caughtUp', ...page, pageSeqs]);
  expect([left?.shown, late.shown]).toEqual([['caughtUp'], ['caughtUp', pageSeqs]]);
});

test('followers get each event within a second if a node told a seq that their ledger does not have', async () => {
  const rig = await FollowersRig.withMaster();
  const stream = rig.followLedger(buyer);
  await rig.settle();
  rig.heads.learn(ledgerId, 2 ** 63);
  for (const seq of [3, 4, 5]) {
    await rig.commit(append());
    rig.clock.advance(1_000);
    await rig.settle();
    expect(stream.shown.at(-1)).toBe(seq);
  }
  const late = rig.followLedger(buyer, { afterSeq: 2n });
  await rig.settle();
  expect([stream.shown, late.shown]).toEqual([
    ['caughtUp', 3, 4, 5],
    [3, 4, 5, 'caughtUp'],
  ]);
});

/** A follower whose access rests on grants of `delegate`. */
const grantedFollower = (grantChanged: (seq: number) => void) => ({
  ...{ actorId: delegate, mayEnd: true, advanced: () => {} },
  grantChanged: ({ event }: { readonly event: { readonly seq: number } }) => grantChanged(event.seq),
});

test('a change of a grant is told once, when the tail reads it, and not by reads of the past', async () => {
  const rig = await FollowersRig.withMaster();
  await rig.commit(grant({ access: 'read' }));
  const ledger = new FollowedLedger(ledgerId, rig.parts);
  await ledger.open();
  const told: number[] = [];
  ledger.add(grantedFollower((seq) => told.push(seq)));
  await ledger.read(0, (read) => read(unboundedWalk()));
  expect([ledger.at(3)?.grantChange?.delegateActorId, told]).toEqual([delegate, []]);
  await rig.commit(revoke());
  await rig.settle();
  expect(told).toEqual([4]);
});

test('between many changes of grants other work goes on', async () => {
  const rig = await FollowersRig.withMaster();
  const ledger = new FollowedLedger(ledgerId, rig.parts);
  await ledger.open();
  const counts = { inTurn: 0, most: 0, all: 0 };
  const told = () => {
    counts.all += 1;
    counts.inTurn += 1;
    counts.most = Math.max(counts.most, counts.inTurn);
  };
  const followers = 50;
  for (let n = 0; n < followers; n += 1) ledger.add(grantedFollower(told));
  const changes = pageSeqs - 4;
  await rig.commit(...Array.from({ length: changes }, (_, n) => (n % 2 === 0 ? grant({ access: 'read' }) : revoke())));
  while (counts.all < changes * followers) {
    await settled();
    counts.inTurn = 0;
  }
  expect(counts.most).toBeLessThanOrEqual(3 * followers);
});
