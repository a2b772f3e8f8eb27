import type { SeededRandom } from '../../simulation/random.ts';
import type { Fault } from './fault.ts';
import { rollingRestart, scale } from './fleet-faults.ts';
import { cutOff, killNode, pauseNode } from './node-faults.ts';
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

/**
 * Returns a shuffled plan. Of 220 faults 100 are kills, for a 99th percentile of their recovery, and 15 of each other
 * kind. Fewer faults are divided in proportion, and a few faults are of as many kinds.
 */
export function planFaults(count: number, random: SeededRandom): FaultKind[] {
  const kinds = Object.keys(faults) as FaultKind[];
  const others = kinds.filter((kind) => kind !== 'node_killed');
  const each = Math.max(1, Math.floor((count * 15) / 220));
  const plan: FaultKind[] = ['node_killed', ...others.flatMap((kind) => Array.from({ length: each }, () => kind))];
  while (plan.length < count) plan.push('node_killed');
  for (let at = plan.length - 1; at > 0; at--) {
    const other = random.between(0, at);
    const [here = 'node_killed', there = 'node_killed'] = [plan[at], plan[other]];
    plan[at] = there;
    plan[other] = here;
  }
  return plan.slice(0, count);
}
