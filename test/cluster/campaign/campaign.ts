import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterMs } from '../../../cluster/local/ports.ts';
import { SeededRandom } from '../../simulation/random.ts';
import { watchHost } from '../../support/host-watch.ts';
import type { Fault, FaultOutcome } from '../faults/fault.ts';
import { type FaultKind, faults } from '../faults/kinds.ts';
import { checkLoad } from '../load/check.ts';
import { LoadFollowers } from '../load/followers.ts';
import { Load } from '../load/load.ts';
import type { LoadHistory } from '../load/load-history.ts';
import { makeLoadWorld } from '../load/load-world.ts';
import { lookAtStore } from '../load/store-looks.ts';
import type { ClusterUnderTest } from '../rig/cluster-under-test.ts';
import { restartEnded } from '../rig/node-under-test.ts';
import { demandsOf } from './aims.ts';
import { carryOutAll, isFair } from './carry-out.ts';
import { type CampaignReport, reportOf } from './report.ts';
import { scrubAll } from './scrub.ts';
import { type Proof, proveLedger } from './verified-export.ts';

/** The longest wait for a new acknowledgement. */
const stalledMaxMs = 10 * 60_000;
const acknowledgedPollMs = 1_000;
/** How long the network of two followers is cut, once before every n-th fault. */
const followersCutMs = 5_000;
const followersCutEvery = 4;
/** How long followers may take to get everything after the last fault. */
const caughtUpMaxMs = 60_000;

interface CampaignOptions {
  readonly seed: number;
  readonly kinds: readonly FaultKind[];
  readonly ledgers: number;
  readonly workers: number;
  readonly streams: number;
  readonly restMaxMs: number;
  /** Followers of the ledgers, a third of which verify each event. */
  readonly followers: number;
  /** The load goes on after the last fault until so many appends are acknowledged, or no further one is. */
  readonly acknowledgedMin: number;
  /** No new fault begins after this time. */
  readonly faultsForMs: number;
  readonly pauseMs: number;
  /** A ledger is exported and verified during every n-th fault. */
  readonly proofEvery: number;
  readonly tell: (line: string) => void;
}

/** Runs faults one after another under load, and compares the answers to callers with the store. */
export async function runCampaign(cluster: ClusterUnderTest, options: CampaignOptions): Promise<CampaignReport> {
  const random = new SeededRandom(options.seed);
  const began = performance.now();
  const world = await makeLoadWorld(cluster.nodes, options.ledgers);
  const { workers, streams, restMaxMs } = options;
  const load = new Load({ cluster, world, random, workers, streams, restMaxMs });
  const proofs: Promise<Proof>[] = [];
  await cluster.untilBalanced(60_000);
  const { history } = load;
  const ledgerIds = world.ledgers.map(({ id }) => id);
  const count = options.followers;
  await using followers = await LoadFollowers.start({
    ...{ nodes: [...cluster.nodes], world, history, random, count, verifying: Math.ceil(count / 3) },
  });
  await using looking = new AsyncDisposableStack();
  looking.use(await lookAtStore(cluster.settings, ledgerIds, history));
  const cuts: Promise<void>[] = [];
  load.start();
  const carryOut = async (kind: FaultKind, fault: Fault): Promise<FaultOutcome> => {
    try {
      return await fault({ cluster, load, world, random });
    } catch (error) {
      return { what: `${kind} did not end well`, violations: [`${kind}: ${String(error)}`] };
    }
  };
  const records = await carryOutAll({
    plan: options.kinds,
    watchHost,
    async goesOn(done) {
      if (performance.now() - began > options.faultsForMs) return false;
      await afterMs(options.pauseMs);
      if (done % followersCutEvery === 0) cuts.push(followers.cut(random.pick(['silent', 'refused']), followersCutMs));
      if (done % options.proofEvery === 0)
        proofs.push(
          proveLedger(cluster, random.pick(cluster.nodes), random.pick(world.ledgers).id, world.buyer.apiKey),
        );
      return true;
    },
    async carryOut(kind, variant) {
      const outcome = await carryOut(kind, variant ?? faults[kind]);
      const ended = await restartEnded(cluster.nodes);
      return { ...outcome, violations: [...(outcome.violations ?? []), ...ended] };
    },
    carriedOut(record, { done, planned }) {
      const { kind, outcome, hostKept } = record;
      const recovered =
        outcome.recoveryMs === undefined ? '' : `, appends again after ${Math.round(outcome.recoveryMs)} ms`;
      const acknowledged = load.history.acknowledgements.length;
      const unfair = isFair(record) ? '' : `; the host kept ${Math.round(100 * hostKept)} %`;
      options.tell(`${done}/${planned} ${kind}: ${outcome.what}${recovered}; ${acknowledged} acknowledged${unfair}`);
      for (const violation of outcome.violations ?? []) options.tell(`  ! ${violation}`);
    },
  });
  const stalled = await untilAcknowledged(() => load.history.acknowledgements.length, options.acknowledgedMin);
  if (stalled !== null) options.tell(`  ! ${stalled}`);
  await afterMs(options.pauseMs);
  await load.stop();
  const stuck: string[] = stalled === null ? [] : [stalled];
  for (const ledger of world.ledgers)
    if ((await load.appendTo(ledger, cluster.nodes)) === null)
      stuck.push(`stuck: ledger ${ledger.id} takes no event after everything was mended`);
  await Promise.all(cuts);
  await followers.untilAllAcknowledged(caughtUpMaxMs);
  options.tell(
    `${count} followers were sent ${followers.receipts} events, and connected ${followers.reconnects} times again`,
  );
  await looking.disposeAsync();
  await followers[Symbol.asyncDispose]();
  const checked = await checkLoad(cluster.settings, ledgerIds, history);
  await world.close();
  options.tell(`checked ${checked.events} events of ${world.ledgers.length} ledgers; now \`cluster verify --all\``);
  const scrub = await scrubAll(cluster);
  const report = reportOf({
    seed: options.seed,
    demands: demandsOf(options.kinds, options.acknowledgedMin),
    records,
    history,
    proofs: await Promise.all(proofs),
    checked: { ...checked, violations: [...stuck, ...checked.violations] },
    scrub,
    tookMs: performance.now() - began,
  });
  if (report.violations > 0) {
    cluster.keep();
    const file = join(cluster.dir, 'calls.jsonl');
    writeCalls(file, history);
    options.tell(`every call is in ${file}, and the logs are beside it`);
  }
  return report;
}

/** Resolves with null after `least` acknowledgements, or with a sentence if none came for too long. */
export async function untilAcknowledged(acknowledged: () => number, least: number): Promise<string | null> {
  let [known, sinceMs] = [acknowledged(), performance.now()];
  while (known < least) {
    await afterMs(acknowledgedPollMs);
    const now = acknowledged();
    if (now > known) [known, sinceMs] = [now, performance.now()];
    else if (performance.now() - sinceMs >= stalledMaxMs)
      return `stalled: no append was acknowledged for ${stalledMaxMs / 60_000} min, after ${known} of ${least}`;
  }
  return null;
}

/** Writes every attempt of every call, a line each. */
function writeCalls(file: string, history: LoadHistory): void {
  const lines = history.calls.map(({ command, ...call }) => {
    const { ledgerId, actorId, kind, lane } = command;
    return JSON.stringify({ ...call, kind, ledgerId, actorId, lane });
  });
  writeFileSync(file, `${lines.join('\n')}\n`);
}
