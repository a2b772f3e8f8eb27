import { processorTicks } from '../../bench/server-process.ts';

/** From it on a machine is too slow for others' sake to be judged by the clock. */
const unfairShare = 0.1;

/** Watches what the host of a virtual machine keeps of the processor time that this machine has work for. */
export interface HostWatch {
  /** Since it was begun, 0 to 1. Always 0 where nobody tells: on other systems than Linux. */
  keptShare(): number;
  /** Whether times that were taken since it was begun say anything of the software. */
  isFair(): boolean;
  /** The most that something may have taken which ended now: none where times say nothing. */
  bound(max: number): number;
}

/** Whether times say anything of the software where the host kept this share. */
export function isFairShare(share: number): boolean {
  return share < unfairShare;
}

export function watchHost(): HostWatch {
  const before = processorTimes();
  const keptShare = () => {
    const now = processorTimes();
    const kept = now.kept - before.kept;
    return kept === 0 ? 0 : kept / (kept + now.given - before.given);
  };
  const isFair = () => isFairShare(keptShare());
  return { keptShare, isFair, bound: (max) => (isFair() ? max : Number.POSITIVE_INFINITY) };
}

function processorTimes(): ReturnType<typeof processorTicks> {
  return process.platform === 'linux' ? processorTicks() : { given: 0, kept: 0 };
}
