import { describe, expect, test } from 'vitest';
import { fullParts, missed, plan, record } from '../support/campaign-parts.ts';
import { Agenda } from './campaign/agenda.ts';
import { aimText, demandsOf, isFull } from './campaign/aims.ts';
import type { FaultRecord } from './campaign/fault-record.ts';
import { type ReportParts, reportOf } from './campaign/report.ts';
import type { FaultOutcome } from './faults/fault.ts';
import type { FaultKind } from './faults/kinds.ts';
import { LoadHistory } from './load/load-history.ts';

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

describe('a fault while the host kept the processors for itself', () => {
  const unfair = (kind: FaultKind, more: Partial<FaultOutcome> = {}): FaultRecord => {
    const { outcome, ...rest } = record(kind);
    return { ...rest, isFair: false, outcome: { ...outcome, ...more } };
  };
  const all = plan.map((kind) => record(kind));
  const missedBeside = (...more: FaultRecord[]) => missed({ records: [...all, ...more] });
  const slow = {
    node_killed: { recoveryMs: 9_000, movedMs: [9_000] },
    cut_off: { duringMs: [9_000], acrossMs: [9_000] },
    rolling_restart: { unservedMs: [9_000] },
  };
  const often = (kind: keyof typeof slow) => Array.from({ length: 20 }, () => unfair(kind, slow[kind]));

  test.each(Object.keys(slow) as (keyof typeof slow)[])('%s: has no time that is judged', (kind) => {
    expect(missedBeside(...often(kind))).toEqual([]);
    const fair = often(kind).map((one) => ({ ...one, isFair: true }));
    expect(missedBeside(...fair)).not.toEqual([]);
  });

  test('is none of those that are demanded', () => {
    const report = reportOf(fullParts({ records: [...all.slice(0, 199), unfair('scaled')] }));
    expect(report).toMatchObject({ reached: false, faults_in_all: 200, faults_on_a_busy_host: 1 });
    const kills = plan.map((kind) => (kind === 'node_killed' ? unfair(kind) : record(kind)));
    expect(missed({ records: kills })).toEqual([
      'faults',
      'faults of the rarest kind',
      'owners killed by kill -9',
      'ms until their ledgers take appends again, 99th percentile',
      'ms until others have the shards of a killed node, 99th percentile',
    ]);
  });

  test.each<[string, FaultKind, Partial<FaultOutcome>]>([
    ['a ledger that takes no append again', 'node_killed', { recoveryMs: Infinity }],
    ['shards that never move', 'node_killed', { movedMs: Array.from({ length: 20 }, () => Infinity) }],
    ['an append in vain', 'redis_stopped', { duringMs: [Infinity] }],
    ['a shard that nobody serves again', 'rolling_restart', { unservedMs: [Infinity] }],
    ['a failed call', 'rolling_restart', { figures: { failed_calls: 1 } }],
    ['a violation', 'scaled', { violations: ['found'] }],
  ])('is not excused for %s', (_, kind, more) => {
    expect(missedBeside(unfair(kind, more))).not.toEqual([]);
  });
});

describe('the agenda of a campaign', () => {
  const carriedOut = (planned: readonly FaultKind[], isUnfair: (at: number) => boolean) => {
    const agenda = new Agenda(planned);
    const done: FaultKind[] = [];
    for (let kind = agenda.next(); kind !== undefined; kind = agenda.next()) {
      if (isUnfair(done.length)) agenda.again(kind);
      done.push(kind);
    }
    expect(agenda.length).toBe(done.length);
    return done;
  };

  test('is the plan, and behind it what has to come again', () => {
    expect(carriedOut(['node_killed', 'cut_off', 'scaled'], () => false)).toEqual(['node_killed', 'cut_off', 'scaled']);
    expect(carriedOut(['node_killed', 'cut_off', 'scaled'], (at) => at === 1 || at === 3)).toEqual([
      'node_killed',
      'cut_off',
      'scaled',
      'cut_off',
      'cut_off',
    ]);
  });

  test('has an end on a host that is always busy', () => {
    expect(carriedOut(plan, () => true)).toHaveLength(2 * plan.length);
  });
});
