import { watchClock } from '../../runtime/clock/clock-watch.ts';
import { accessKeptMs } from '../../store/access-log.ts';
import { RecordSweeping } from '../record-sweeping.ts';
import type { NodeContext } from './context.ts';

const accessSweepEveryMs = 60_000;

/** Removes what has expired, and watches the clock. */
export function startUpkeep(node: NodeContext): AsyncDisposable {
  const { records, access, clock, machine, log, metrics, now } = node;
  const { registry } = metrics;
  // One node sweeps for all: the owner of this name's shard.
  const isSweeper = () => node.ownsShardOf('records that have run out');
  const sweeping = new RecordSweeping({ records, clock, log, registry, isSweeper });
  const unwatchClock = watchClock({ clock, machine, log, registry });
  const accessSweep = setInterval(() => {
    // By a clock that is far ahead, all of it would be too old.
    if (!node.isClockRight()) return;
    access.sweep(now() - accessKeptMs).catch((error) => log.warn({ err: error }, 'sweeping failed'));
  }, accessSweepEveryMs).unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(accessSweep);
      unwatchClock();
      await sweeping[Symbol.asyncDispose]();
    },
  };
}
