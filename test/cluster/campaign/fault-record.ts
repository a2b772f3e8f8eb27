import { isFairShare } from '../../support/host-watch.ts';
import type { FaultOutcome } from '../faults/fault.ts';
import type { FaultKind } from '../faults/kinds.ts';

/** A fault that was carried out. Times on the monotonic clock. */
export interface FaultRecord {
  readonly kind: FaultKind;
  readonly beganMs: number;
  readonly endedMs: number;
  /** What the host kept, while its times were taken, of the processor time that the machine had work for: 0 to 1. */
  readonly hostKept: number;
  readonly outcome: FaultOutcome;
}

/** Whether its times are judged by the aims, and it is one of those that are demanded. */
export function isFair({ hostKept }: FaultRecord): boolean {
  return isFairShare(hostKept);
}
