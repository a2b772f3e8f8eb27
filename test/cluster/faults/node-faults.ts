import { afterMs } from '../../../cluster/local/ports.ts';
import { watchHost } from '../../support/host-watch.ts';
import { type ClusterUnderTest, leaseTtlMs, shardCount } from '../rig/cluster-under-test.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import { acrossApart, appendDuring, ledgerOfEachOwner } from './appends-during.ts';
import { chosen, type Fault, type FaultContext, type FaultOutcome } from './fault.ts';
import { ownerOfSomething } from './owner.ts';

const leasesRunOut = 'svc_leases_lost_total{cause="ran_out"}';
const forwardedAnswered = 'svc_forwarded_calls_total{result="answered"}';
const fencedAppends = 'svc_fenced_appends_total';
const probes = 3;
/** Far longer than the aims demand (aims.ts). */
const movedMaxMs = 30_000;
const pollMs = 50;

/** kill -9 of an owner of busy ledgers. One time in four it stays away until others have all its shards. */
export const killNode: Fault = (context) => chosen(context, context.random.chance(0.25) ? killForGood : killBriefly);

/** The victim is started again before its leases run out. */
export const killBriefly: Fault = async (context) => {
  const outcome = await killOwner(context, () => afterMs(context.random.between(0, 2_000)));
  return { ...outcome, movedMs: [] };
};

/** The victim is started again only when others have all of its shards. */
export const killForGood: Fault = async (context) => {
  let movedMs = Number.POSITIVE_INFINITY;
  let hostKept = 0;
  const outcome = await killOwner(context, async (victim, killedMs) => {
    const host = watchHost();
    if (await untilMoved(context.cluster, victim)) movedMs = performance.now() - killedMs;
    hostKept = host.keptShare();
  });
  return {
    ...outcome,
    what: `${outcome.what}, which others have after ${Math.round(movedMs)} ms`,
    movedMs: [movedMs],
    hostKept: Math.max(hostKept, outcome.hostKept ?? 0),
    violations: movedMs === Number.POSITIVE_INFINITY ? [`nobody came to hold the shards: ${outcome.what}`] : [],
  };
};

/** `recoveryMs` is that of the slowest of a few ledgers that the victim owned, counted from the kill. */
async function killOwner(
  context: FaultContext,
  away: (victim: NodeUnderTest, killedMs: number) => Promise<void>,
): Promise<FaultOutcome> {
  const { cluster, load } = context;
  const { victim, hit } = await ownerOfSomething(context);
  const others = cluster.nodes.filter((node) => node !== victim);
  const host = watchHost();
  const killedMs = performance.now();
  await victim.kill();
  const seenMs = performance.now() - killedMs;
  const appends = Promise.all(hit.slice(0, probes).map((ledger) => load.appendTo(ledger, others)));
  const recovered = appends.then((took) => ({ took, hostKept: host.keptShare() }));
  await away(victim, killedMs);
  await victim.start();
  const { took, hostKept } = await recovered;
  const recoveryMs = seenMs + Math.max(...took.map((ms) => ms ?? Number.POSITIVE_INFINITY));
  return { what: `${victim.id} killed, owner of ${hit.length} ledgers`, recoveryMs, hostKept };
}

/** Waits until other nodes hold all shards. Returns false if that takes too long. */
async function untilMoved(cluster: ClusterUnderTest, victim: NodeUnderTest): Promise<boolean> {
  const beganMs = performance.now();
  while (performance.now() - beganMs < movedMaxMs) {
    const owners = [...(await cluster.owners()).values()];
    if (owners.length === shardCount && !owners.includes(victim.id)) return true;
    await afterMs(pollMs);
  }
  return false;
}

/**
 * SIGSTOP of an owner for longer than its leases last. When it wakes up it believes that it still owns its shards,
 * until it finds the leases gone. Then it must append to its former ledgers, and forward commands again.
 */
export const pauseNode: Fault = async (context) => {
  const { random, load } = context;
  const { victim, hit } = await ownerOfSomething(context);
  const [lostBefore, fencedBefore] = [await victim.counted(leasesRunOut), await victim.counted(fencedAppends)];
  const pausedMs = leaseTtlMs + random.between(500, 2_500);
  victim.pause();
  await afterMs(pausedMs);
  victim.resume();
  const awakeMs = performance.now();
  await victim.untilReady();
  let lost = 0;
  while (lost === 0 && performance.now() - awakeMs < movedMaxMs) {
    await afterMs(pollMs);
    lost = (await victim.counted(leasesRunOut)) - lostBefore;
  }
  const forwardedBefore = await victim.counted(forwardedAnswered);
  const took = await Promise.all(hit.slice(0, probes).map((ledger) => load.appendTo(ledger, [victim])));
  let forwarded = 0;
  while (forwarded === 0 && performance.now() - awakeMs < movedMaxMs) {
    await afterMs(pollMs);
    forwarded = (await victim.counted(forwardedAnswered)) - forwardedBefore;
  }
  const fenced = (await victim.counted(fencedAppends)) - fencedBefore;
  const violations = [
    ...(lost === 0 ? [`${victim.id} slept for ${pausedMs} ms and found none of its leases gone`] : []),
    ...(forwarded === 0 ? [`${victim.id} slept for ${pausedMs} ms and forwards nothing`] : []),
    ...(took.includes(null) ? [`${victim.id} slept for ${pausedMs} ms and does not append to what it owned`] : []),
  ];
  const what = `${victim.id} paused for ${pausedMs} ms, which lost it ${lost} leases`;
  return { what, violations, figures: { fenced_appends: fenced } };
};

const cutPlaces = [
  'peers from one',
  'all from each other',
  'one from Redis',
  'peers from one, and it from Redis',
] as const;
const cutWays = ['refused', 'silent'] as const;

/** Cuts connections between nodes, or to Redis: refused or silent. All nodes append meanwhile. */
export const cutOff: Fault = (context) => {
  const [which, how] = [context.random.pick(cutPlaces), context.random.pick(cutWays)];
  return chosen(context, (again) => cut(again, which, how));
};

/** No node reaches another one: each node runs all commands that it receives. */
export const cutOffAll: Fault = (context) => cut(context, 'all from each other', context.random.pick(cutWays));

async function cut(
  context: FaultContext,
  which: (typeof cutPlaces)[number],
  how: (typeof cutWays)[number],
): Promise<FaultOutcome> {
  const { cluster, random } = context;
  const node = random.pick(cluster.nodes);
  const cuts = {
    'peers from one': [node.fromPeers],
    'all from each other': cluster.nodes.map(({ fromPeers }) => fromPeers),
    'one from Redis': [node.toRedis],
    'peers from one, and it from Redis': [node.toRedis, node.fromPeers],
  }[which];
  const ledgers = await ledgerOfEachOwner(context);
  const beganMs = performance.now();
  for (const cut of cuts) cut.set(how);
  const appends = await appendDuring(context, ledgers, random.between(1_500, leaseTtlMs + 2_000));
  const lastedMs = Math.round(performance.now() - beganMs);
  for (const cut of cuts) cut.set('open');
  await afterMs(1_000);
  const what = `${which}, ${how}, ${node.id}, ${lastedMs} ms`;
  const unheard = how === 'silent' ? cluster.nodes.filter(({ fromPeers }) => cuts.includes(fromPeers)) : [];
  return { what, ...acrossApart(appends, new Set(unheard.map(({ id }) => id))) };
}
