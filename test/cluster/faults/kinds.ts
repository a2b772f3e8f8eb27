import type { SeededRandom } from '../../simulation/random.ts';
import type { Fault } from './fault.ts';
import { cutOff, killNode, pauseNode, rollingRestart, scale } from './node-faults.ts';
import { flushRedis, killCassandra, pauseCassandra, stopRedis } from './store-faults.ts';

export type FaultKind =
  | 'node_killed'
  | 'node_paused'
  | 'redis_stopped'
  | 'redis_flushed'
  | 'cassandra_paused'
  | 'cassandra_killed'
  | 'cut_off'
  | 'rolling_restart'
  | 'scaled';

export const faults: Readonly<Record<FaultKind, Fault>> = {
  node_killed: killNode,
  node_paused: pauseNode,
  redis_stopped: stopRedis,
  redis_flushed: flushRedis,
  cassandra_paused: pauseCassandra,
  cassandra_killed: killCassandra,
  cut_off: cutOff,
  rolling_restart: rollingRestart,
  scaled: scale,
};

/** Every kind in equal parts but for kills, which are what is left: `others` of each other kind, shuffled. */
export function planFaults(count: number, random: SeededRandom): FaultKind[] {
  const kinds = Object.keys(faults) as FaultKind[];
  const others = kinds.filter((kind) => kind !== 'node_killed');
  // Half of all faults are kills: what they cost has to be known at its 99th percentile.
  const each = Math.max(1, Math.floor(count / 2 / others.length));
  const plan: FaultKind[] = others.flatMap((kind) => Array.from({ length: each }, () => kind));
  while (plan.length < count) plan.push('node_killed');
  for (let at = plan.length - 1; at > 0; at--) {
    const other = random.between(0, at);
    const [here = 'node_killed', there = 'node_killed'] = [plan[at], plan[other]];
    plan[at] = there;
    plan[other] = here;
  }
  return plan;
}
