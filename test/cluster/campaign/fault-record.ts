import type { FaultOutcome } from '../faults/fault.ts';
import type { FaultKind } from '../faults/kinds.ts';

/** A fault that was carried out. Times on the monotonic clock. */
export interface FaultRecord {
  readonly kind: FaultKind;
  readonly beganMs: number;
  readonly endedMs: number;
  /** The machine had its processors meanwhile: its host kept less than a tenth. Of others only what never ended says anything. */
  readonly isFair: boolean;
  readonly outcome: FaultOutcome;
}
