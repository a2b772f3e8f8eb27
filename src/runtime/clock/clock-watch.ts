import type { Registry } from 'prom-client';
import type { Log } from '../telemetry/log.ts';
import { metricsIn } from '../telemetry/metrics.ts';
import { type Clock, every } from './clock.ts';
import { implausibleClock, isPlausibleTime } from './plausible-clock.ts';

const checkEveryMs = 10_000;
/** Time synchronisation corrects smaller differences. */
const aheadReportedMs = 5_000;

interface ClockWatchParts {
  readonly clock: Clock;
  readonly machine: Pick<Clock, 'now'>;
  readonly log: Log;
  readonly registry: Registry;
}

/**
 * Reports by a metric, and by a log line from 5 s on, that this node's clock is ahead of its machine's, which was set
 * back (monotonic-wall-clock.ts). Also logs an implausible machine clock. Returns a function that stops the watch.
 */
export function watchClock({ clock, machine, log, registry }: ClockWatchParts): () => void {
  const aheadMs = () => Math.max(0, clock.now() - machine.now());
  metricsIn(registry).readGauge({
    name: 'svc_clock_ahead_seconds',
    help: 'How far this node tells times ahead of the clock of its machine, because that was set back.',
    read: () => aheadMs() / 1_000,
  });

  let isAheadReported = false;
  let isOffReported = false;
  return every(clock, checkEveryMs, () => {
    const isOff = !isPlausibleTime(machine.now());
    if (isOff && !isOffReported)
      log.error(
        { machine_ms: machine.now() },
        `${implausibleClock(machine.now())}; until then the node goes by its last good time, and refuses appends`,
      );
    isOffReported = isOff;
    const ahead = aheadMs();
    if (ahead > aheadReportedMs && !isAheadReported && !isOff)
      log.warn(
        { ahead_ms: ahead },
        'this node tells times ahead of the clock of its machine, which was set back: it goes on more slowly until the machine has caught up',
      );
    isAheadReported = ahead > aheadReportedMs;
  });
}
