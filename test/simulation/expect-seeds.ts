import { expect, test } from 'vitest';
import { commandsPerSeed, faultsPerSeed, type RunResult } from './run.ts';
import { runSeeds } from './seeds.ts';

/** Both halves together; SIMULATION_SEEDS asks for more. */
const seedsByDefault = 2_000;
const msPerSeedMax = 500;

/** Half of all seeds, from `first` on: every one of them has to find nothing, and together they have to have tried enough. */
export function expectSeeds(name: string, first: number): void {
  const count = Math.ceil(Number(process.env.SIMULATION_SEEDS ?? seedsByDefault) / 2);
  test(`nodes that fail at random keep their word: ${name}`, { timeout: count * msPerSeedMax }, async () => {
    const results = await runSeeds(first, count);
    const mean = (of: (result: RunResult) => number) =>
      results.reduce((sum, result) => sum + of(result), 0) / results.length;
    for (const { faults } of results) expect(faults).toHaveLength(faultsPerSeed);
    // That nothing was found counts only where enough went wrong.
    expect(mean(({ counts }) => counts.written + counts.refused)).toBeGreaterThan(commandsPerSeed * 0.75);
    expect(mean(({ counts }) => counts.refused)).toBeGreaterThan(20);
    expect(mean(({ counts }) => counts.claims)).toBeGreaterThan(10);
    expect(mean(({ counts }) => counts.fenced)).toBeGreaterThan(5);
    expect(mean(({ counts }) => counts.unknown)).toBeGreaterThan(0.5);
    expect(mean(({ counts }) => counts.replayed)).toBeGreaterThan(1);
    expect(mean(({ counts }) => counts.forwarded)).toBeGreaterThan(50);
    expect(mean(({ counts }) => counts.notOwner)).toBeGreaterThan(1);
    expect(mean(({ counts }) => counts.unreachable)).toBeGreaterThan(5);
    expect(mean(({ counts }) => counts.moved)).toBeGreaterThan(8);
  });
}
