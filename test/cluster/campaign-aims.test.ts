import { describe, expect, test } from 'vitest';
import { demandsOf, isFull } from './campaign/aims.ts';
import type { FaultRecord } from './campaign/carry-out.ts';
import { type ReportParts, reportOf } from './campaign/report.ts';
import { fullParts, missed, plan, record } from './campaign-parts.ts';
import type { FaultOutcome } from './faults/fault.ts';
import type { FaultKind } from './faults/kinds.ts';
import { LoadHistory } from './load/load-history.ts';

describe('the aims of the full campaign', () => {
  test('are all reached by a good campaign', () => {
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
      'times that a busy host does not explain: 0 (0)',
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
  /** The records of a good campaign, but with other outcomes of the faults of one kind. */
  const butOf = (changed: FaultKind, more: (at: number) => Partial<FaultOutcome>) =>
    plan.map((kind, at): FaultRecord => {
      const { outcome, ...rest } = record(kind);
      return { ...rest, outcome: kind === changed ? { ...outcome, ...more(at) } : outcome };
    });
  /** The same for the first fault of the kind only, which is less than one percent of the measurements. */
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
  ])('are not reached with %s', (_, more, names) => {
    const found = missed(more);
    for (const name of names) expect(found).toContainEqual(expect.stringContaining(name));
    expect(reportOf(fullParts(more)).reached).toBe(false);
  });

  test('omit what no fault of a short campaign measured, but not what a broken-off fault should measure', () => {
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

  test('of a short campaign are those of its request', () => {
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

describe('a fault on a busy host', () => {
  const busy = (kind: FaultKind, more: Partial<FaultOutcome> = {}): FaultRecord => {
    const { outcome, ...rest } = record(kind);
    return { ...rest, hostKept: 0.5, outcome: { ...outcome, ...more } };
  };
  const all = plan.map((kind) => record(kind));
  const missedBeside = (...more: FaultRecord[]) => missed({ records: [...all, ...more] });
  const twenty = (kind: FaultKind, more: Partial<FaultOutcome>) => Array.from({ length: 20 }, () => busy(kind, more));
  const unexplained = 'times that a busy host does not explain';

  test.each<[FaultKind, Partial<FaultOutcome>]>([
    ['node_killed', { recoveryMs: 12_000, movedMs: [20_000] }],
    ['cut_off', { duringMs: [12_000], acrossMs: [22_000] }],
    ['rolling_restart', { unservedMs: [8_000] }],
  ])('of kind %s may have times up to four times the bound, which are in no percentile', (kind, longest) => {
    expect(missedBeside(...twenty(kind, longest))).toEqual([]);
    const fair = twenty(kind, longest).map((one) => ({ ...one, hostKept: 0.09 }));
    expect(missedBeside(...fair)).not.toEqual([]);
  });

  test.each<[FaultKind, Partial<FaultOutcome>]>([
    ['node_killed', { recoveryMs: 12_001 }],
    ['node_killed', { movedMs: [20_001] }],
    ['redis_stopped', { duringMs: [12_001] }],
    ['cut_off', { acrossMs: [22_001] }],
    ['rolling_restart', { unservedMs: [8_001] }],
  ])('of kind %s may have no longer times', (kind, longer) => {
    expect(missedBeside(busy(kind, longer))).toEqual([unexplained]);
  });

  test('does not count for the demands', () => {
    const kills = plan.map((kind) => (kind === 'node_killed' ? busy(kind) : record(kind)));
    expect(missed({ records: kills })).toEqual([
      'faults',
      'faults of the rarest kind',
      'owners killed by kill -9',
      'ms until their ledgers take appends again, 99th percentile',
      'ms until others have the shards of a killed node, 99th percentile',
    ]);
  });

  test('is reported separately with its times', () => {
    const report = reportOf(
      fullParts({ records: [...all, busy('node_killed', { what: 'killed', recoveryMs: 9_000 })] }),
    );
    expect(report.faults_on_a_busy_host).toEqual([
      {
        kind: 'node_killed',
        host_kept_percent: 50,
        what: 'killed',
        longest_ms: { recoveryMs: 9_000, movedMs: 4_000 },
      },
    ]);
    expect(report).toMatchObject({
      reached: true,
      faults_in_all: 221,
      recovery_ms: { node_killed: { count: 100, max: 900 } },
    });
  });

  test('keeps the aims that it measured in a short campaign', () => {
    const demands = demandsOf(['node_killed'], 0);
    const brief = { ...record('node_killed'), outcome: { what: '', recoveryMs: 900, movedMs: [] } };
    expect(missed({ demands, records: [brief] })).toEqual([]);
    expect(missed({ demands, records: [brief, busy('node_killed')] })).toEqual([
      'ms until others have the shards of a killed node, 99th percentile',
    ]);
  });

  test.each<[string, FaultKind, Partial<FaultOutcome>, string]>([
    ['a ledger that takes no append again', 'node_killed', { recoveryMs: Infinity }, 'faults after which appends'],
    ['an append in vain', 'redis_stopped', { duringMs: [Infinity] }, 'appends in vain'],
    [
      'a shard that nobody serves again',
      'rolling_restart',
      { unservedMs: [Infinity] },
      'shards that nobody served again',
    ],
    ['a failed call', 'rolling_restart', { figures: { failed_calls: 1 } }, 'failed calls of clients that retry'],
    ['a violation', 'scaled', { violations: ['found'] }, 'violations'],
  ])('does not excuse %s', (_, kind, more, name) => {
    expect(missedBeside(busy(kind, more))).toContainEqual(expect.stringContaining(name));
  });
});
