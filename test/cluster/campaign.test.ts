import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ServerProcess } from '../../cluster/local/child-process.ts';
import { SeededRandom } from '../simulation/random.ts';
import { untilAcknowledged } from './campaign/campaign.ts';
import { percentile } from './campaign/percentiles.ts';
import { reportOf } from './campaign/report.ts';
import { scrubOf } from './campaign/scrub.ts';
import { fullParts, kinds, plan, record } from './campaign-parts.ts';
import { acrossApart } from './faults/appends-during.ts';
import type { FaultContext } from './faults/fault.ts';
import { moveViolations, stopViolations } from './faults/fleet-faults.ts';
import { planFaults } from './faults/kinds.ts';
import { killBriefly, killForGood } from './faults/node-faults.ts';
import { type LoadAttempt, LoadHistory } from './load/load-history.ts';
import { unserved } from './load/served.ts';
import { shardCount } from './rig/cluster-under-test.ts';
import { restartEnded } from './rig/node-under-test.ts';

function counted(plan: readonly string[]): Record<string, number> {
  return Object.fromEntries(kinds.map((kind) => [kind, plan.filter((planned) => planned === kind).length]));
}

describe('a campaign', () => {
  test('kills nodes 100 times and has 15 faults of each other kind among 220', () => {
    expect(plan).toHaveLength(220);
    const { node_killed: kills, ...others } = counted(plan);
    expect(kills).toBe(100);
    expect(new Set(Object.values(others))).toEqual(new Set([15]));
  });

  test('has the same plan for the same seed, and another plan for another one', () => {
    const plan = planFaults(220, new SeededRandom(7));
    expect(planFaults(220, new SeededRandom(7))).toEqual(plan);
    expect(planFaults(220, new SeededRandom(8))).not.toEqual(plan);
  });

  test.each([
    [99, 99],
    [50, 50],
    [100, 100],
  ])('the %i th percentile of 1 to 100 is %i', (percent, value) => {
    const values = Array.from({ length: 100 }, (_, at) => 100 - at);
    expect(percentile(values, percent)).toBe(value);
  });

  test.each([1, 4, 9, 10, 40])('has %i faults of as many kinds as possible', (count) => {
    const few = planFaults(count, new SeededRandom(3));
    expect(few).toHaveLength(count);
    expect(new Set(few).size).toBe(Math.min(count, kinds.length));
  });

  test('counts an append as near a fault within five seconds of its beginning or end', () => {
    const history = new LoadHistory();
    for (const atMs of [4_000, 5_000, 20_000, 44_999, 45_001]) history.acknowledgements.push({ atMs, tookMs: 1 });
    expect(reportOf(fullParts({ records: [record('node_killed')], history })).near_a_fault_percent).toBe(40);
  });

  test('reports a violation of every source', () => {
    const outcome = { what: '', violations: ['by a fault'] };
    const report = reportOf(
      fullParts({
        records: [{ kind: 'scaled', beganMs: 0, endedMs: 1, hostKept: 0, outcome }],
        proofs: [{ kind: 'failed', reason: 'by verify' }],
        checked: { violations: ['by the checker'], events: 0 },
        scrub: { code: 1, ledgers: 1, events: 1, findings: 1, told: 'by the scrub' },
      }),
    );
    expect(report.violations).toBe(4);
    expect(report.first_violations).toEqual([
      'by a fault',
      'proof: by verify',
      'by the checker',
      'cluster verify --all ended with 1: by the scrub',
    ]);
    expect(report.reached).toBe(false);
  });
});

describe('the load after the last fault', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const minutesMs = (minutes: number) => minutes * 60_000;

  /**
   * Returns the result after `minutes`, or 'goes on'. An append is acknowledged at each minute in `acknowledgedAfter`.
   */
  async function endAfter(minutes: number, acknowledgedAfter: readonly number[], least: number): Promise<unknown> {
    const beganMs = performance.now();
    const acknowledged = () => acknowledgedAfter.filter((at) => performance.now() - beganMs >= minutesMs(at)).length;
    let end: unknown = 'goes on';
    void untilAcknowledged(acknowledged, least).then((told) => {
      end = told;
    });
    await vi.advanceTimersByTimeAsync(minutesMs(minutes));
    return end;
  }

  test('ends when enough appends are acknowledged, however long that takes', async () => {
    expect(await endAfter(0, [0, 0], 2)).toBeNull();
    expect(await endAfter(26, [0, 9, 18, 27], 4)).toBe('goes on');
    expect(await endAfter(28, [0, 9, 18, 27], 4)).toBeNull();
  });

  test('ends with a violation ten minutes after the last acknowledgement', async () => {
    expect(await endAfter(18.9, [0, 9], 3)).toBe('goes on');
    expect(await endAfter(19.1, [0, 9], 3)).toMatch(/^stalled: no append was acknowledged for 10 min, after 2 of 3$/);
  });
});

describe('shards that move with the number of nodes', () => {
  test('are about half of them in each direction', () => {
    expect(moveViolations({ growing: 42, shrinking: 61 })).toEqual([]);
    expect(moveViolations({ growing: 33, shrinking: 67 })).toEqual([
      '33 % of the shards moved when growing, and not about half',
      '67 % of the shards moved when shrinking, and not about half',
    ]);
  });
});

describe('appends while nodes are cut off', () => {
  const append = (asked: string, owner: string, tookMs: number) => ({ asked, owner, tookMs });

  test('are separated by whether their owner is silent, with their durations', () => {
    const all = [append('a', 'a', 20), append('b', 'a', 2_700), append('a', 'b', 30), append('c', 'a', Infinity)];
    expect(acrossApart(all, new Set(['a']))).toEqual({ duringMs: [20, 30], acrossMs: [2_700, Infinity] });
    expect(acrossApart(all, new Set())).toEqual({ duringMs: [20, 2_700, 30, Infinity], acrossMs: [] });
  });
});

describe('a kill', () => {
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  /** A node that owns two ledgers. `owners` returns the owners of the shards; `killed` is called by a kill. */
  function contextOf(owners: () => Map<number, string>, killed: () => void): FaultContext {
    const view = async () => ({ shards: { held: 1, leaving: 0 } });
    const victim = { id: 'node-1', kill: async () => killed(), start: async () => {}, view };
    const world = { ledgers: [{ id: 'a' }, { id: 'b' }] };
    const cluster = { nodes: [victim], owners: async () => owners(), shardOf: () => 1 };
    const load = { appendTo: async ({ id }: { readonly id: string }) => (id === 'a' ? 100 : 150) };
    const random = { pick: <T>([first]: readonly T[]) => first, between: () => 0 };
    return { cluster, load, world, random } as unknown as FaultContext;
  }
  const ofTheVictim = () => new Map([[1, 'node-1']]);

  test('is measured from its beginning', async () => {
    let nowMs = 1_000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const context = contextOf(ofTheVictim, () => {
      nowMs += 400;
    });
    expect(await killBriefly(context)).toMatchObject({ recoveryMs: 550, movedMs: [] });
  });

  test('is an endless violation if no node takes the shards', async () => {
    vi.useFakeTimers();
    const outcome = killForGood(contextOf(ofTheVictim, () => {}));
    await vi.advanceTimersByTimeAsync(31_000);
    expect(await outcome).toMatchObject({
      movedMs: [Infinity],
      violations: ['nobody came to hold the shards: node-1 killed, owner of 2 ledgers'],
    });
  });

  test('is measured until others hold all shards', async () => {
    vi.useFakeTimers();
    let isKilled = false;
    const others = () => new Map(Array.from({ length: shardCount }, (_, shard) => [shard, 'node-2']));
    const context = contextOf(
      () => (isKilled ? others() : ofTheVictim()),
      () => setTimeout(() => (isKilled = true), 3_000),
    );
    const outcome = killForGood(context);
    await vi.advanceTimersByTimeAsync(31_000);
    const { movedMs = [], violations } = await outcome;
    expect(movedMs[0]).toBeGreaterThanOrEqual(3_000);
    expect(movedMs[0]).toBeLessThan(3_200);
    expect(violations).toEqual([]);
  });
});

describe('the time that a shard served nobody', () => {
  const call = (ledgerId: string, beganMs: number, endedMs: number, kind: string, unsent = false) =>
    ({ command: { ledgerId }, beganMs, endedMs, result: { kind }, unsent }) as unknown as LoadAttempt;
  const shardOf = (ledgerId: string) => Number(ledgerId.slice(-1));
  const longest = (...calls: LoadAttempt[]) => Object.fromEntries(unserved(calls, shardOf, 100, 1_000));

  test('lasts from a failed attempt to the first certain answer of a later one', () => {
    const vain = [call('a1', 200, 210, 'not_written'), call('a1', 300, 900, 'unknown')];
    const late = call('a1', 1_100, 1_150, 'written');
    expect(longest(call('a1', 150, 1_140, 'written'), ...vain, late)).toEqual({ 1: 990 });
    expect(longest(...vain, call('b1', 400, 450, 'refused'), late)).toEqual({ 1: 250 });
    expect(longest(...vain, call('b2', 400, 450, 'written'), late)).toEqual({ 1: 950, 2: 50 });
  });

  test('ignores attempts at an address without a listener', () => {
    const refused = call('a1', 150, 151, 'not_written', true);
    expect(longest(refused, call('a1', 900, 950, 'written'))).toEqual({ 1: 50 });
    expect(longest(refused)).toEqual({});
  });

  test('covers attempts of the given time only, and is endless without an answer', () => {
    expect(longest(call('a1', 50, 9_000, 'written'), call('a1', 1_001, 9_000, 'written'))).toEqual({});
    expect(longest(call('a1', 50, 60, 'written'), call('a1', 100, 110, 'not_written'))).toEqual({ 1: Infinity });
  });
});

describe('the end of a node', () => {
  test('is 0 within 20 s after SIGTERM', () => {
    expect(stopViolations([{ id: 'node-1', code: 0, tookMs: 19_999 }])).toEqual([]);
    expect(
      stopViolations([
        { id: 'node-1', code: 1, tookMs: 3 },
        { id: 'node-2', code: null, tookMs: 20_001 },
      ]),
    ).toEqual([
      'node-1 ended with 1 after SIGTERM, and not with 0',
      'node-2 ended with a signal after SIGTERM, and not with 0',
      'node-2 took 20001 ms to end',
    ]);
  });
});

describe('the result of cluster verify --all', () => {
  const out = JSON.stringify({ verdict: 'good', ledgers: 2, events: 40, finding_count: 0 });

  test('is read from its JSON, and quoted if its exit code is not 0', () => {
    expect(scrubOf({ code: 0, out, err: '' })).toEqual({ code: 0, ledgers: 2, events: 40, findings: 0, told: '' });
    expect(scrubOf({ code: 69, out: '', err: 'Cassandra does not answer' })).toMatchObject({
      code: 69,
      events: 0,
      told: 'Cassandra does not answer',
    });
  });

  test('shows nothing without a result, even with exit code 0', () => {
    expect(scrubOf({ code: 0, out: '', err: '' })).toMatchObject({ events: 0, told: 'it printed no result' });
  });
});

describe('a node that ended by itself', () => {
  const node = (id: string, process: { readonly ended: boolean } | null) => {
    const started: string[] = [];
    const running = process === null ? null : ({ hasEnded: () => process.ended } as ServerProcess);
    return { id, logFile: `${id}.log`, process: running, started, start: async () => void started.push(id) };
  };

  test('is reported and started again; running and never started nodes are left alone', async () => {
    const nodes = [node('a', { ended: false }), node('b', { ended: true }), node('c', null)];
    expect(await restartEnded(nodes)).toEqual([expect.stringMatching(/^b ended .*b\.log$/)]);
    expect(nodes.flatMap(({ started }) => started)).toEqual(['b']);
  });
});
