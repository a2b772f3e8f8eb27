import { LedgerError } from '../domain/errors.ts';
import type { World } from './call.ts';

/** Sandbox and production never meet; who belongs to neither may be named in both (decisions.md, section 4). */
export function refuseOtherWorld(own: World | null, other: World | null, field: string): void {
  if (own === null || other === null || own === other) return;
  throw new LedgerError(
    'environment_mismatch',
    `Field ${field} names an actor of the ${other} environment; this is ${own}.`,
    { field },
  );
}
