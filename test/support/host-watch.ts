import { processorTicks } from '../../bench/server-process.ts';

/** The steal share from which times are not judged. */
const unfairShare = 0.1;

/** Watches the steal time of a virtual machine. */
export interface HostWatch {
  /** The steal share since the start, 0 to 1; 0 on other systems than Linux. */
  keptShare(): number;
  /** Whether times since the start say anything about the software. */
  isFair(): boolean;
  /** The bound for a time that ended now; infinite if the host was busy. */
  bound(max: number): number;
}

/** Whether times are judged at this steal share. */
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
