import { cpus, networkInterfaces } from 'node:os';
import type { Clock } from './actors/clock.ts';

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/**
 * How busy it is here, 0 to 1, since the last call: this thread's event loop, or all processors of the machine, whichever is busier. On few
 * processors the threads that verify signatures and commit can be the bound while the loop has time.
 */
export function machineUtilization(): () => number {
  let loop = performance.eventLoopUtilization();
  let machine = processorTimes();
  return () => {
    const [loopBefore, machineBefore] = [loop, machine];
    loop = performance.eventLoopUtilization();
    machine = processorTimes();
    const totalMs = machine.totalMs - machineBefore.totalMs;
    const busy = totalMs === 0 ? 0 : 1 - (machine.idleMs - machineBefore.idleMs) / totalMs;
    return Math.max(busy, performance.eventLoopUtilization(loop, loopBefore).utilization);
  };
}

/** From here on there is little to spare. */
const saturatedFrom = 0.8;
const saturationLookMs = 100;

/** Whether this thread or the machine was saturated when it was looked at last, which is done ten times a second while it is asked for. */
export function saturation(): () => boolean {
  const utilization = machineUtilization();
  let lookedMs = performance.now();
  let isSaturated = false;
  return () => {
    const nowMs = performance.now();
    if (nowMs - lookedMs >= saturationLookMs) {
      lookedMs = nowMs;
      isSaturated = utilization() >= saturatedFrom;
    }
    return isSaturated;
  };
}

function processorTimes(): { readonly idleMs: number; readonly totalMs: number } {
  let idleMs = 0;
  let totalMs = 0;
  for (const { times } of cpus()) {
    idleMs += times.idle;
    totalMs += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return { idleMs, totalMs };
}

/** Milliseconds of processor time that this thread has had. */
export function threadProcessorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** The addresses of this machine, as its network interfaces have them now. */
export function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((found) => (found ?? []).map(({ address }) => address));
}
