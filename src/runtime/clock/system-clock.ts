import { cpus, networkInterfaces } from 'node:os';
import type { Clock } from './clock.ts';

export const systemClock: Clock = {
  now: () => Date.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Measures utilization since the last call, 0 to 1: of this thread's event loop or of all processors, whichever is
 * higher. On few processors the threads that verify signatures and commit can be the bottleneck while the event loop
 * has time left.
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

const saturatedFrom = 0.8;
const saturationLookMs = 100;

/** Whether this thread or the machine is saturated: measured at most ten times a second, when it is called. */
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

export function threadProcessorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

export function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((found) => (found ?? []).map(({ address }) => address));
}
