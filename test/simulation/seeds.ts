import { plantedBugs } from './bugs.ts';
import { type RunResult, runSeed } from './run.ts';

/** What is wrong with a run and how to see it again; null where nothing is. */
function complaint({ seed, violations, faults }: RunResult): string | null {
  if (violations.length === 0) return null;
  return [
    `Seed ${seed} (again: node test/simulation/seeds.ts ${seed})`,
    ...violations.map((violation) => `  ${violation}`),
    ...faults.map((fault) => `  after ${fault}`),
  ].join('\n');
}

/** Runs seeds from `first` on, as many as asked for. Throws at the first that finds something. */
export async function runSeeds(first: number, count: number): Promise<RunResult[]> {
  const results: RunResult[] = [];
  for (let seed = first; seed < first + count; seed++) {
    const result = await runSeed(seed);
    const found = complaint(result);
    if (found !== null) throw new Error(found);
    results.push({ ...result, transcript: '' });
  }
  return results;
}

/** `node test/simulation/seeds.ts SEED [BUG]`: one seed, with all that its clients saw. */
if (import.meta.main) {
  const [seed = '1', named] = process.argv.slice(2);
  const bug = plantedBugs.find((one) => one === named) ?? null;
  const result = await runSeed(Number(seed), bug);
  process.stdout.write(
    `${result.transcript}\n${JSON.stringify(result.counts)}\n${complaint(result) ?? 'nothing wrong'}\n`,
  );
}
