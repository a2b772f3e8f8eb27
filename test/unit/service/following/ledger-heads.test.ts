import { expect, test } from 'vitest';
import { createLog } from '../../../../src/runtime/telemetry/log.ts';
import { type HeadWatch, LedgerHeads, type RemoteHeads } from '../../../../src/service/following/ledger-heads.ts';
import type { Head, LedgerEntry } from '../../../../src/store/ledger-store.ts';
import { ManualClock } from '../../../support/clock.ts';

const settle = () => new Promise((resolve) => setImmediate(resolve));

type AskHead = (ledgerId: string) => Promise<Head | null>;

/** A store whose head the test sets, and heads over it, or over another `head`. */
function rig(remote: Partial<RemoteHeads> | null = null, other?: AskHead) {
  const clock = new ManualClock(0);
  const store = { seq: 3, asked: 0, fails: false };
  const own = async (): Promise<Head | null> => {
    store.asked += 1;
    if (store.fails) throw new Error('the store does not answer');
    return { seq: store.seq, hash: '' };
  };
  const head = other ?? own;
  const subscription = { [Symbol.dispose]: () => {} };
  const sources: string[] = [];
  const heads = new LedgerHeads({
    ledgers: { head },
    clock,
    log: createLog('silent'),
    monotonicMs: () => clock.now(),
    learned: (source) => void sources.push(source),
    remote: remote === null ? null : { subscribe: () => subscription, listen: () => {}, tell: () => {}, ...remote },
  });
  const seen: number[] = [];
  const watch = async () => {
    let watched: HeadWatch | null = null;
    watched = await heads.watch('l', () => {
      if (watched !== null) seen.push(watched.seq);
    });
    return watched;
  };
  return { clock, store, heads, seen, sources, watch };
}

const entry = (seq: number) => ({ seq }) as LedgerEntry;

test('a commit of this node is told at once, and an older one changes nothing', async () => {
  const { heads, seen, watch } = rig();
  using watched = await watch();
  expect(watched.seq).toBe(3);
  heads.committed('l', [entry(4), entry(5)]);
  heads.committed('l', [entry(4)]);
  heads.committed('another ledger', [entry(9)]);
  expect([watched.seq, seen]).toEqual([5, [5]]);
});

test('a node that stands alone asks the store only where a write may have landed of which nobody told', async () => {
  const { clock, store, heads, watch } = rig();
  using watched = await watch();
  await clock.advance(60_000);
  await settle();
  expect(store.asked).toBe(1);
  store.seq = 7;
  heads.claimed('l');
  await settle();
  expect([watched.seq, store.asked]).toEqual([7, 2]);
});

test('a store that fails is asked again until it answers', async () => {
  const { clock, store, heads, watch } = rig();
  using watched = await watch();
  store.fails = true;
  store.seq = 8;
  heads.batchInDoubt('l');
  await settle();
  store.fails = false;
  await clock.advance(1_000);
  await settle();
  expect(watched.seq).toBe(8);
});

test('of a ledger of another node the store is asked every second in which nobody tells of it', async () => {
  const told: [string, number][] = [];
  let hear = (_ledgerId: string, _seq: number) => {};
  const { clock, store, heads, sources, watch } = rig({
    listen: (heard) => {
      hear = heard;
    },
    tell: (ledgerId, seq) => void told.push([ledgerId, seq]),
  });
  using watched = await watch();
  store.seq = 4;
  await clock.advance(1_000);
  await settle();
  expect([watched.seq, store.asked]).toEqual([4, 2]);
  await clock.advance(900);
  store.seq = 6;
  hear('l', 6);
  await settle();
  await clock.advance(100);
  await settle();
  expect([watched.seq, store.asked]).toEqual([6, 3]);
  heads.committed('l', [entry(7)]);
  expect(told).toEqual([['l', 7]]);
  expect(sources).toEqual(['store', 'store', 'peer', 'own']);
});

/** A rig that other nodes tell of heads. */
function toldRig(head?: AskHead) {
  let hear = (_ledgerId: string, _seq: number) => {};
  const listen = (heard: typeof hear): void => {
    hear = heard;
  };
  const made = rig({ listen }, head);
  return { ...made, hear: (ledgerId: string, seq: number) => hear(ledgerId, seq) };
}

test('a head that another node tells moves nothing unless the store has it, and later heads are told as before', async () => {
  const { store, heads, hear, seen, sources, watch } = toldRig();
  using watched = await watch();
  for (const false_ of [2 ** 62, 4, Number.POSITIVE_INFINITY, Number.NaN]) hear('l', false_);
  await settle();
  expect([watched.seq, seen]).toEqual([3, []]);
  store.seq = 4;
  hear('l', 4);
  await settle();
  heads.committed('l', [entry(5)]);
  heads.learn('l', 6);
  store.seq = 8;
  hear('l', 7);
  await settle();
  expect([watched.seq, seen]).toEqual([8, [4, 5, 6, 8]]);
  expect(sources).toEqual(['store', 'peer', 'own', 'store', 'peer']);
});

test('heads that the store does not confirm keep no ledger from being asked for every second', async () => {
  const { clock, store, hear, watch } = toldRig();
  using watched = await watch();
  for (const told of [0, 3, 2 ** 62, -1]) {
    await clock.advance(900);
    hear('l', told);
    await settle();
    store.seq += 1;
    await clock.advance(100);
    await settle();
    expect(watched.seq).toBe(store.seq);
  }
});

test('a head that another node tells while the store is asked has it asked again', async () => {
  const { store, heads, hear, watch } = toldRig();
  using watched = await watch();
  heads.claimed('l');
  store.seq = 4;
  for (const told of [4, 4, 4]) hear('l', told);
  await settle();
  expect([watched.seq, store.asked]).toEqual([4, 3]);
});

test('of many ledgers that are silent, or of which another node tells, a few are asked for at once', async () => {
  const asked: string[] = [];
  let [running, most] = [0, 0];
  const { clock, heads, hear } = toldRig(async (ledgerId) => {
    asked.push(ledgerId);
    running += 1;
    most = Math.max(most, running);
    await settle();
    running -= 1;
    return { seq: 3, hash: '' };
  });
  for (let n = 0; n < 200; n += 1) await heads.watch(`l-${n}`, () => {});
  asked.length = 0;
  await clock.advance(1_000);
  await expect.poll(() => new Set(asked).size).toBe(200);
  expect([asked.length, most]).toEqual([200, 32]);
  asked.length = 0;
  for (let told = 0; told < 600; told += 1) hear(`l-${told % 200}`, 2 ** 62);
  await expect.poll(() => new Set(asked).size).toBe(200);
  // Those that were being asked for when they were told of again are asked for once more.
  expect([asked.length, most]).toEqual([232, 32]);
});

/** Heads over a store that answers, from a time on, only when the test lets it. */
function heldRig() {
  const asked: string[] = [];
  const waiting = new Map<string, () => void>();
  const store = { isHeld: false };
  const { clock, heads, hear } = toldRig(async (ledgerId) => {
    asked.push(ledgerId);
    if (store.isHeld) await new Promise<void>((resolve) => waiting.set(ledgerId, resolve));
    return { seq: 3, hash: '' };
  });
  const release = (ledgerId: string) => waiting.get(ledgerId)?.();
  return { clock, asked, store, heads, waiting, release, hear };
}

test('what other nodes tell of takes no place from the ledgers of which all are silent', async () => {
  const { clock, asked, store, heads, waiting, hear } = heldRig();
  await heads.watch('silent', () => {});
  for (let n = 0; n < 1_100; n += 1) await heads.watch(`l-${n}`, () => {});
  store.isHeld = true;
  for (let n = 0; n < 1_100; n += 1) hear(`l-${n}`, 9);
  await clock.advance(1_000);
  store.isHeld = false;
  asked.length = 0;
  for (const resolve of waiting.values()) resolve();
  await expect.poll(() => asked).toContain('silent');
});

test('a ledger that is watched again while it is asked for is asked for once more if another node tells of it', async () => {
  const { asked, store, heads, release, hear } = heldRig();
  const before = await heads.watch('l', () => {});
  for (let n = 1; n < 32; n += 1) await heads.watch(`l-${n}`, () => {});
  store.isHeld = true;
  for (let n = 1; n < 32; n += 1) hear(`l-${n}`, 9);
  for (const told of [8, 9]) hear('l', told);
  before[Symbol.dispose]();
  store.isHeld = false;
  await heads.watch('l', () => {});
  hear('l', 10);
  asked.length = 0;
  release('l');
  await settle();
  expect(asked).toEqual(['l']);
});

test('a ledger that is watched no more is not asked for', async () => {
  const { clock, store, watch } = rig({});
  const watched = await watch();
  watched[Symbol.dispose]();
  await clock.advance(5_000);
  await settle();
  expect(store.asked).toBe(1);
});

test('another node may tell of an unknown ledger, and a seq below the newest one changes nothing', async () => {
  const { heads, hear, seen, sources, watch } = toldRig();
  using watched = await watch();
  for (const [ledgerId, seq] of [
    ['', 9],
    ['of another form', 9],
    ['l', -1],
    ['l', -(2 ** 63)],
  ] as const)
    hear(ledgerId, seq);
  expect([watched.seq, seen, sources]).toEqual([3, [], ['store']]);
  heads.committed('l', [entry(4)]);
  expect(watched.seq).toBe(4);
});
