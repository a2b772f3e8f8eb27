import { type HostWatch, isFairShare } from '../../support/host-watch.ts';
import type { Fault, FaultOutcome } from '../faults/fault.ts';
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

interface CarryOutParts {
  readonly plan: readonly FaultKind[];
  /** `variant`: the fault to repeat. null: chance chooses one of the kind. */
  readonly carryOut: (kind: FaultKind, variant: Fault | null) => Promise<FaultOutcome>;
  /** Called before each fault with the number of faults so far. false: no further one. */
  readonly goesOn: (carriedOut: number) => Promise<boolean>;
  readonly watchHost: () => Pick<HostWatch, 'keptShare'>;
  /** Called after each fault. `planned`: the number of faults, including repetitions known so far. */
  readonly carriedOut: (record: FaultRecord, counts: { readonly done: number; readonly planned: number }) => void;
}

/**
 * Carries out the faults of a plan in order. A fault on a busy host is repeated at the end, once for each planned one.
 */
export async function carryOutAll(parts: CarryOutParts): Promise<FaultRecord[]> {
  const left = parts.plan.map((kind) => ({ kind, variant: null as Fault | null }));
  const mayComeAgain = new Map([...Map.groupBy(parts.plan, (kind) => kind)].map(([kind, all]) => [kind, all.length]));
  const records: FaultRecord[] = [];
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    if (!(await parts.goesOn(records.length))) break;
    const { kind, variant } = next;
    const host = parts.watchHost();
    const beganMs = performance.now();
    const outcome = await parts.carryOut(kind, variant);
    const hostKept = outcome.hostKept ?? host.keptShare();
    const record = { kind, beganMs, endedMs: performance.now(), hostKept, outcome };
    records.push(record);
    const mayCome = mayComeAgain.get(kind) ?? 0;
    if (!isFair(record) && mayCome > 0) {
      mayComeAgain.set(kind, mayCome - 1);
      left.push({ kind, variant: outcome.again ?? variant });
    }
    parts.carriedOut(record, { done: records.length, planned: records.length + left.length });
  }
  return records;
}
