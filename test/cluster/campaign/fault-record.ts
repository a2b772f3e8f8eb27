import type { FaultOutcome } from '../faults/fault.ts';
import type { FaultKind } from '../faults/kinds.ts';

/** A fault that was carried out. Times on the monotonic clock. */
export interface FaultRecord {
  readonly kind: FaultKind;
  readonly beganMs: number;
  readonly endedMs: number;
  readonly outcome: FaultOutcome;
}
