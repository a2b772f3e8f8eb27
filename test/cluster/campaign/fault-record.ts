import { isFairShare } from '../../support/host-watch.ts';
import type { FaultOutcome } from '../faults/fault.ts';
import type { FaultKind } from '../faults/kinds.ts';

/** A fault that was carried out. Times on the monotonic clock. */
export interface FaultRecord {
  readonly kind: FaultKind;
  readonly beganMs: number;
  readonly endedMs: number;
  /** The share of processor time that the host withheld while the times were measured: 0 to 1 (host-watch.ts). */
  readonly hostKept: number;
  readonly outcome: FaultOutcome;
}

/** Whether the host was not busy: then the aims judge the times, and the fault counts for the demands. */
export function isFair({ hostKept }: FaultRecord): boolean {
  return isFairShare(hostKept);
}
