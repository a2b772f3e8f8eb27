import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ServerProcess } from '../../cluster/local/child-process.ts';
import { SeededRandom } from '../simulation/random.ts';
import { untilAcknowledged } from './campaign/acknowledged.ts';
import { aimText, demandsOf, isFull } from './campaign/aims.ts';
import type { FaultRecord } from './campaign/fault-record.ts';
import { percentile } from './campaign/percentiles.ts';
import { type ReportParts, reportOf } from './campaign/report.ts';
import { scrubOf } from './campaign/scrub.ts';
import { acrossApart } from './faults/appends-during.ts';
import type { FaultContext, FaultOutcome } from './faults/fault.ts';
import { moveViolations, stopViolations } from './faults/fleet-faults.ts';
import { type FaultKind, faults, planFaults } from './faults/kinds.ts';
import { killBriefly } from './faults/node-faults.ts';
import { type LoadAttempt, LoadHistory } from './load/load-history.ts';
import { unserved } from './load/served.ts';
import { startThoseThatEnded } from './rig/ended-nodes.ts';

const kinds = Object.keys(faults) as FaultKind[];
const plan = planFaults(220, new SeededRandom(1));

/** A fault that went as it should; kills were over in `recoveryMs`. */
function record(kind: FaultKind, recoveryMs = 900): FaultRecord {
  const measured = {
    ...(kind === 'node_killed' ? { movedMs: [4_000] } : {}),
    ...(kind === 'redis_stopped' || kind === 'cut_off' ? { duringMs: [20, 2_600] } : {}),
    ...(kind === 'cut_off' ? { acrossMs: [2_600, 5_100] } : {}),
    ...(kind === 'rolling_restart' ? { figures: { failed_calls: 0 }, unservedMs: [500, 1_000] } : {}),
  };
  return { kind, beganMs: 10_000, endedMs: 40_000, outcome: { what: '', recoveryMs, ...measured } };
}

/** The full campaign, with everything as it should be. */
function fullParts(more: Partial<ReportParts> = {}): ReportParts {
  const history = new LoadHistory();
  for (let n = 0; n < 100_000; n++) history.acknowledgements.push({ atMs: n < 30_000 ? 9_000 : 90_000, tookMs: 1 });
  return {
    seed: 1,
    demands: demandsOf(plan, 100_000),
    records: plan.map((kind) => record(kind)),
    history,
    proofs: [{ kind: 'proved', events: 100 }],
    checked: { violations: [], events: 110_000 },
    scrub: { code: 0, ledgers: 24, events: 110_000, findings: 0, told: '' },
    tookMs: 1,
    ...more,
  };
}

/** Names of what was not reached. */
const missed = (more: Partial<ReportParts>) =>
  reportOf(fullParts(more))
    .aims.filter(({ reached }) => !reached)
    .map(({ name }) => name);

function counted(plan: readonly string[]): Record<string, number> {
  return Object.fromEntries(kinds.map((kind) => [kind, plan.filter((planned) => planned === kind).length]));
}

describe('a campaign', () => {
  test('of 220 faults kills nodes 100 times and has 15 faults of each other kind', () => {
    expect(plan).toHaveLength(220);
    const { node_killed: kills, ...others } = counted(plan);
    expect(kills).toBe(100);
    expect(new Set(Object.values(others))).toEqual(new Set([15]));
  });

  test('of one seed is the same plan again, of another one another', () => {
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

  test.each([1, 4, 9, 10, 40])('of %i faults has just as many, of as many kinds as there can be', (count) => {
    const few = planFaults(count, new SeededRandom(3));
    expect(few).toHaveLength(count);
    expect(new Set(few).size).toBe(Math.min(count, kinds.length));
  });

  test('counts an append as near a fault within five seconds of its beginning or end', () => {
    const history = new LoadHistory();
    for (const atMs of [4_000, 5_000, 20_000, 44_999, 45_001]) history.acknowledgements.push({ atMs, tookMs: 1 });
    expect(reportOf(fullParts({ records: [record('node_killed')], history })).near_a_fault_percent).toBe(40);
  });

  test('reports a violation wherever it was found', () => {
    const outcome = { what: '', violations: ['by a fault'] };
    const report = reportOf(
      fullParts({
        records: [{ kind: 'scaled', beganMs: 0, endedMs: 1, outcome }],
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

describe('what the full campaign demands', () => {
  test('is all reached by one in which all went well', () => {
    const report = reportOf(fullParts());
    expect(report).toMatchObject({ reached: true, full: true });
    expect(report.aims.map(({ name, wanted, found }) => `${name}: ${found} (${wanted})`)).toEqual([
      'faults: 220 (at least 200)',
      'faults of the rarest kind: 15 (at least 15)',
      'owners killed by kill -9: 100 (at least 100)',
      'ms until their ledgers take appends again, 99th percentile: 900 (below 3000)',
      'faults after which appends did not go on: 0 (0)',
      'ms until others have the shards of a killed node, 99th percentile: 4000 (below 5000)',
      'appends in vain while Redis or nodes are away: 0 (0)',
      'ms until a node has appended while Redis or nodes are away, 99th percentile: 2600 (below 3000)',
      'ms until it has where the owner keeps silent behind a cut, 99th percentile: 5100 (below 5500)',
      'failed calls of clients that retry, in rolling restarts: 0 (0)',
      'shards that nobody served again then: 0 (0)',
      'ms that a shard serves nobody then, 99th percentile: 1000 (below 2000)',
      'acknowledged appends: 100000 (at least 100000)',
      'percent of them within 5 s of a fault: 30 (at least 30)',
      'violations: 0 (0)',
      'ledgers read during the faults and proved by export and verify: 1 (at least 1)',
      'exit code of cluster verify --all: 0 (0)',
      'events that it verified: 110000 (at least 100000)',
    ]);
  });

  const without = (kind: FaultKind) => plan.filter((planned) => planned !== kind).map((planned) => record(planned));
  const few = new LoadHistory();
  few.acknowledgements.push(...fullParts().history.acknowledgements.slice(0, 99_999));
  const far = new LoadHistory();
  far.acknowledgements.push(...fullParts().history.acknowledgements.map((one) => ({ ...one, atMs: 90_000 })));
  /** All as it should be but faults of one kind, of which `more` was measured. */
  const butOf = (changed: FaultKind, more: (at: number) => Partial<FaultOutcome>) =>
    plan.map((kind, at): FaultRecord => {
      const { outcome, ...rest } = record(kind);
      return { ...rest, outcome: kind === changed ? { ...outcome, ...more(at) } : outcome };
    });
  /** Something at the first fault of the kind alone: less than one percent of what is measured. */
  const butOnce = (changed: FaultKind, more: Partial<FaultOutcome>) =>
    butOf(changed, (at) => (at === plan.indexOf(changed) ? more : {}));
  const often = (ms: number) => Array.from({ length: 1_000 }, () => ms);
  const slowKills = butOf('node_killed', (at) => (at % 20 === 0 ? { recoveryMs: 3_000 } : {}));
  const slowMoves = butOf('node_killed', (at) => (at % 20 === 0 ? { movedMs: [5_000] } : {}));
  const allBrief = butOf('node_killed', () => ({ movedMs: [] }));
  const allHeard = butOf('cut_off', () => ({ acrossMs: [] }));
  const failing = butOf('rolling_restart', () => ({ figures: { failed_calls: 1 } }));
  const longAway = butOf('rolling_restart', () => ({ unservedMs: [1_000, 2_000] }));
  const inVain = butOf('redis_stopped', () => ({ duringMs: [20, Infinity] }));
  const onceInVain = butOnce('redis_stopped', { duringMs: [...often(20), Infinity] });
  const onceInVainAcross = butOnce('cut_off', { acrossMs: [...often(2_600), Infinity] });
  const slowBesideACut = butOf('cut_off', () => ({ duringMs: [20, 3_000] }));
  const slowAcross = butOf('cut_off', () => ({ acrossMs: [2_600, 5_500] }));
  const storeGoneForEver = butOnce('cassandra_killed', { recoveryMs: Infinity });
  const onceKilledForEver = butOnce('node_killed', { recoveryMs: Infinity });
  const onceUnserved = butOnce('rolling_restart', { unservedMs: [...often(1_000), Infinity] });
  const unmeasured = plan.map((kind): FaultRecord => ({ ...record(kind), outcome: { what: 'did not end well' } }));
  const scrub = { ledgers: 24, events: 110_000, findings: 0, told: '' };
  const recovery = 'ms until their ledgers take appends again, 99th percentile';
  const restarts = 'failed calls of clients that retry, in rolling restarts';
  const away = 'ms that a shard serves nobody then, 99th percentile';
  const during = 'ms until a node has appended while Redis or nodes are away, 99th percentile';
  const across = 'ms until it has where the owner keeps silent behind a cut, 99th percentile';
  const vain = 'appends in vain while Redis or nodes are away';
  const stopped = 'faults after which appends did not go on';
  const lost = 'shards that nobody served again then';
  const moves = 'ms until others have the shards of a killed node, 99th percentile';

  test.each<[string, Partial<ReportParts>, string[]]>([
    ['fewer faults', { records: plan.slice(0, 199).map((kind) => record(kind)) }, ['faults']],
    ['a kind left out', { records: without('scaled') }, ['faults of the rarest kind']],
    ['slow recoveries', { records: slowKills }, [recovery]],
    ['a failed call in a rolling restart', { records: failing }, [restarts]],
    [
      'faults that broke off',
      { records: unmeasured },
      [recovery, stopped, moves, vain, during, across, restarts, lost, away],
    ],
    ['no kill whose shards moved', { records: allBrief }, [moves]],
    ['no cut behind which an owner keeps silent', { records: allHeard }, [across]],
    ['appends in vain without Redis', { records: inVain }, [vain, during]],
    ['one append in vain of many without Redis', { records: onceInVain }, [vain]],
    ['one append in vain of many across a cut', { records: onceInVainAcross }, [vain]],
    ['slow appends beside a cut', { records: slowBesideACut }, [during]],
    ['slow appends across a cut', { records: slowAcross }, [across]],
    ['no append after Cassandra was back', { records: storeGoneForEver }, [stopped]],
    ['no append after one of a hundred kills', { records: onceKilledForEver }, [stopped]],
    ['one shard of many that nobody serves again', { records: onceUnserved }, [lost]],
    ['shards that move late', { records: slowMoves }, [moves]],
    ['shards that serve nobody for too long', { records: longAway }, [away]],
    ['one append less', { history: few }, ['acknowledged appends']],
    ['appends far from faults', { history: far }, ['percent of them within 5 s of a fault']],
    ['no proof', { proofs: [{ kind: 'not_read', reason: '' }] }, ['ledgers read during the faults']],
    ['a scrub that could not check everything', { scrub: { ...scrub, code: 2 } }, ['violations', 'exit code']],
    ['a scrub that did not end', { scrub: { ...scrub, code: null } }, ['violations', 'exit code']],
    ['a scrub of less', { scrub: { ...scrub, code: 0, events: 99_999 } }, ['events that it verified']],
  ])('is not reached with %s', (_, more, names) => {
    const found = missed(more);
    for (const name of names) expect(found).toContainEqual(expect.stringContaining(name));
    expect(reportOf(fullParts(more)).reached).toBe(false);
  });

  test('of a 99th percentile is told with the most that there was, and no other', () => {
    const once = butOnce('rolling_restart', { unservedMs: [...often(1_000), 1_900] });
    const most = (records: readonly FaultRecord[]) =>
      reportOf(fullParts({ records })).aims.find(({ name }) => name === away);
    expect(most(once)).toMatchObject({ found: 1_000, most: 1_900, reached: true });
    expect(most(onceUnserved)).toMatchObject({ found: 1_000, most: 'endless' });
    expect(reportOf(fullParts()).aims.filter((aim) => 'most' in aim)).toHaveLength(5);
  });

  test('are told apart by an end that never came and by nothing that was measured', () => {
    const told = (records: readonly FaultRecord[], wanted: string) =>
      reportOf(fullParts({ records }))
        .aims.filter(({ name }) => name === wanted)
        .map(aimText);
    expect(told(onceUnserved, away)).toEqual([`✓ ${away}: 1000, at most endless (below 2000)`]);
    expect(told(unmeasured, away)).toEqual([`✗ ${away}: endless, at most endless (below 2000)`]);
    expect(told(allBrief, moves)).toEqual([`✗ ${moves}: not measured (below 5000)`]);
    expect(told(unmeasured, restarts)).toEqual([`✗ ${restarts}: not measured (0)`]);
  });

  test('of a short one leaves out what none of its faults had to measure, and not what one that broke off had', () => {
    const demands = demandsOf(['node_killed', 'cut_off'], 0);
    const namesOf = (records: readonly FaultRecord[]) => missed({ demands, records });
    const measured = (kind: FaultKind, more: Partial<FaultOutcome>): FaultRecord => {
      const { outcome, ...rest } = record(kind);
      return { ...rest, outcome: { ...outcome, ...more } };
    };
    const brokenOff = (kind: FaultKind): FaultRecord => ({ ...record(kind), outcome: { what: 'did not end well' } });
    const [brief, heard] = [measured('node_killed', { movedMs: [] }), measured('cut_off', { acrossMs: [] })];
    expect(namesOf([brief, heard])).toEqual([]);
    expect(namesOf([brokenOff('node_killed'), heard])).toEqual([recovery, stopped, moves]);
    expect(namesOf([brief, brokenOff('cut_off')])).toEqual([vain, during, across]);
  });

  test('of a short one is what was asked for, and told apart from the full one', () => {
    const demands = demandsOf(['node_paused', 'cut_off'], 2_000);
    expect(demands).toMatchObject({ faults: 2, faultsOfEachKind: 1, kills: 0, acknowledged: 2_000 });
    expect(isFull(demands)).toBe(false);
    expect(isFull(demandsOf(plan, 100_000))).toBe(true);
    expect(isFull(demandsOf(plan, 99_999))).toBe(false);
    expect(
      isFull(
        demandsOf(
          plan.filter((kind) => kind !== 'scaled'),
          100_000,
        ),
      ),
    ).toBe(false);
  });
});

describe('the load behind the last fault', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const minutesMs = (minutes: number) => minutes * 60_000;

  /** What it came to, if it has by then, where one more was acknowledged after each of these. */
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

  test('ends when enough was acknowledged, however long that takes', async () => {
    expect(await endAfter(0, [0, 0], 2)).toBeNull();
    expect(await endAfter(26, [0, 9, 18, 27], 4)).toBe('goes on');
    expect(await endAfter(28, [0, 9, 18, 27], 4)).toBeNull();
  });

  test('ends with a violation ten minutes after the last that was acknowledged', async () => {
    expect(await endAfter(18.9, [0, 9], 3)).toBe('goes on');
    expect(await endAfter(19.1, [0, 9], 3)).toMatch(/^stalled: no append was acknowledged for 10 min, after 2 of 3$/);
  });
});

describe('shards that move with the number of nodes', () => {
  test('are about half of them, each way', () => {
    expect(moveViolations({ growing: 42, shrinking: 61 })).toEqual([]);
    expect(moveViolations({ growing: 33, shrinking: 67 })).toEqual([
      '33 % of the shards moved when growing, and not about half',
      '67 % of the shards moved when shrinking, and not about half',
    ]);
  });
});

describe('appends while nodes are cut off', () => {
  const append = (asked: string, owner: string, tookMs: number) => ({ asked, owner, tookMs });

  test('are told apart by whether their owner keeps silent, and as long as they took', () => {
    const all = [append('a', 'a', 20), append('b', 'a', 2_700), append('a', 'b', 30), append('c', 'a', Infinity)];
    expect(acrossApart(all, new Set(['a']))).toEqual({ duringMs: [20, 30], acrossMs: [2_700, Infinity] });
    expect(acrossApart(all, new Set())).toEqual({ duringMs: [20, 2_700, 30, Infinity], acrossMs: [] });
  });
});

describe('the recovery from a kill', () => {
  afterEach(() => void vi.restoreAllMocks());

  test('counts from the kill, and not from when its end was seen', async () => {
    let nowMs = 1_000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const kill = async () => {
      nowMs += 400;
    };
    const view = async () => ({ shards: { held: 1, leaving: 0 } });
    const victim = { id: 'node-1', kill, start: async () => {}, view };
    const world = { ledgers: [{ id: 'a' }, { id: 'b' }] };
    const cluster = { nodes: [victim], owners: async () => new Map([[1, 'node-1']]), shardOf: () => 1 };
    const load = { appendTo: async ({ id }: { readonly id: string }) => (id === 'a' ? 100 : 150) };
    const random = { pick: <T>([first]: readonly T[]) => first, between: () => 0 };
    const context = { cluster, load, world, random } as unknown as FaultContext;
    expect(await killBriefly(context)).toMatchObject({ recoveryMs: 550, movedMs: [] });
  });
});

describe('how long a shard served nobody', () => {
  const call = (ledgerId: string, beganMs: number, endedMs: number, kind: string, unsent = false) =>
    ({ command: { ledgerId }, beganMs, endedMs, told: { kind }, unsent }) as unknown as LoadAttempt;
  const shardOf = (ledgerId: string) => Number(ledgerId.slice(-1));
  const longest = (...calls: LoadAttempt[]) => Object.fromEntries(unserved(calls, shardOf, 100, 1_000));

  test('is from an attempt in vain to the first certain answer to one that began no earlier', () => {
    const vain = [call('a1', 200, 210, 'not_written'), call('a1', 300, 900, 'unknown')];
    const late = call('a1', 1_100, 1_150, 'written');
    expect(longest(call('a1', 150, 1_140, 'written'), ...vain, late)).toEqual({ 1: 990 });
    expect(longest(...vain, call('b1', 400, 450, 'refused'), late)).toEqual({ 1: 250 });
    expect(longest(...vain, call('b2', 400, 450, 'written'), late)).toEqual({ 1: 950, 2: 50 });
  });

  test('is not told by a caller that asks where nobody listens', () => {
    const refused = call('a1', 150, 151, 'not_written', true);
    expect(longest(refused, call('a1', 900, 950, 'written'))).toEqual({ 1: 50 });
    expect(longest(refused)).toEqual({});
  });

  test('is told of attempts of the time asked for alone, and is endless where none had an answer', () => {
    expect(longest(call('a1', 50, 9_000, 'written'), call('a1', 1_001, 9_000, 'written'))).toEqual({});
    expect(longest(call('a1', 50, 60, 'written'), call('a1', 100, 110, 'not_written'))).toEqual({ 1: Infinity });
  });
});

describe('the end of a node', () => {
  test('after SIGTERM is with 0, within 20 s', () => {
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

describe('what cluster verify --all ended with', () => {
  const out = JSON.stringify({ verdict: 'good', ledgers: 2, events: 40, finding_count: 0 });

  test('is read from its JSON, and told in its words where it is not 0', () => {
    expect(scrubOf({ code: 0, out, err: '' })).toEqual({ code: 0, ledgers: 2, events: 40, findings: 0, told: '' });
    expect(scrubOf({ code: 69, out: '', err: 'Cassandra does not answer' })).toMatchObject({
      code: 69,
      events: 0,
      told: 'Cassandra does not answer',
    });
  });

  test('without a result shows nothing, even with 0', () => {
    expect(scrubOf({ code: 0, out: '', err: '' })).toMatchObject({ events: 0, told: 'it printed no result' });
  });
});

describe('a node that ended by itself', () => {
  const node = (id: string, process: { readonly ended: boolean } | null) => {
    const started: string[] = [];
    const running = process === null ? null : ({ hasEnded: () => process.ended } as ServerProcess);
    return { id, logFile: `${id}.log`, process: running, started, start: async () => void started.push(id) };
  };

  test('is told, and started again; those that run, and one that was never started, are left alone', async () => {
    const nodes = [node('a', { ended: false }), node('b', { ended: true }), node('c', null)];
    expect(await startThoseThatEnded(nodes)).toEqual([expect.stringMatching(/^b ended .*b\.log$/)]);
    expect(nodes.flatMap(({ started }) => started)).toEqual(['b']);
  });
});
