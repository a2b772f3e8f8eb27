import { LedgerError } from '../../domain/errors.ts';
import type { World } from './call.ts';

/** Throws `environment_mismatch` if two actors are of different worlds. An actor of neither may be named in both. */
export function refuseOtherWorld(own: World | null, other: World | null, field: string): void {
  if (own === null || other === null || own === other) return;
  throw new LedgerError(
    'environment_mismatch',
    `Field ${field} names an actor of the ${other} environment; this is ${own}.`,
    { field },
  );
}
