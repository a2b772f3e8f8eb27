import { describe, expect, test } from 'vitest';
import { LedgerActor } from '../../../src/actors/ledger/ledger-actor.ts';
import { sleep } from '../../../src/runtime/clock/clock.ts';
import { SeededRandom } from '../../simulation/random.ts';
import { ManualClock } from '../../support/clock.ts';
import { append, createMaster, ledgerId, openLedger } from '../../support/commands.ts';
import { emptyLedgerData } from '../../support/memory-store/ledger-data.ts';
import { isNightly } from '../../support/nightly.ts';
import { faultsOf, rig, startMs, storeWith } from '../../support/world.ts';

const appendsEach = 60;

/**
 * Nodes none of which reaches another one, each of which has the same ledger to write to all the time. The store takes
 * its time, of the first node `slowness` times as long.
 */
async function contend(nodes: number, seed: number, slowness: number) {
  const random = new SeededRandom(seed);
  const clock = new ManualClock(startMs);
  const data = emptyLedgerData();
  const worlds = Array.from({ length: nodes }, (_, node) => {
    const pause = (min: number, max: number) => sleep(clock, random.between(min, max) * (node === 0 ? slowness : 1));
    return rig({
      clock,
      data,
      wrap: (memory) =>
        storeWith(memory, {
          claim: async (ledger) => {
            await pause(15, 65);
            const claim = await memory.claim(ledger);
            await pause(15, 65);
            return claim;
          },
          append: async (claim, entries) => {
            await pause(5, 25);
            await memory.append(claim, entries);
            await pause(5, 25);
          },
          read: async (ledger, from, limit) => {
            await pause(10, 50);
            return memory.read(ledger, from, limit);
          },
        }),
    });
  });
  const tookMs: number[] = [];
  const bytes = (length: number) => Uint8Array.from({ length }, () => random.between(0, 255));
  const actors = worlds.map(({ parts }) => new LedgerActor(ledgerId, { ...parts, random: bytes }));
  let left = actors.length;
  const opened = Promise.all([openLedger(), createMaster()].map((command) => actors[0]?.submit(command)));
  const write = async (actor: LedgerActor) => {
    await opened;
    for (let made = 0; made < appendsEach; made++) {
      const began = clock.now();
      await actor.submit(append({ deadline: began + 30_000 }));
      tookMs.push(clock.now() - began);
      await sleep(clock, random.between(1, 120));
    }
    left -= 1;
  };
  const writing = Promise.all(actors.map(write));
  for (let step = 0; step < 1_000 && left > 0; step++) await clock.advance(1_000);
  await writing;
  const claims = worlds.reduce((sum, { meter }) => sum + meter.claims.length, 0);
  const log = await worlds[0]?.log();
  return { longestMs: Math.max(...tookMs), appends: tookMs.length, claims, log: log ?? [] };
}

describe('nodes that reach the store but not each other', () => {
  const seeds = isNightly ? [1, 2, 3] : [1];
  const cases = [2, 3].flatMap((nodes) => seeds.map((seed) => [nodes, seed] as const));

  test.each(cases)('%i of them let each other finish (%i): none is kept waiting', async (nodes, seed) => {
    const { longestMs, appends, claims, log } = await contend(nodes, seed, 1);
    expect(log).toHaveLength(appends + 3);
    expect(faultsOf(log)).toEqual([]);
    expect(longestMs).toBeLessThan(2_000);
    expect(claims).toBeLessThan(1.5 * appends);
  });

  test.each(seeds)('a node that takes six times as long writes too (%i)', async (seed) => {
    const { longestMs } = await contend(2, seed, 6);
    expect(longestMs).toBeLessThan(6_000);
  });

  test.each(seeds)('five of them wait no longer than callers do (%i)', async (seed) => {
    const { longestMs, appends, claims } = await contend(5, seed, 1);
    expect(longestMs).toBeLessThan(6_000);
    expect(claims).toBeLessThan(3 * appends);
  });
});
