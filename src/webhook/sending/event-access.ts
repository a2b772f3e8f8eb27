import { LedgerError } from '../../domain/errors.ts';
import type { LedgerReading } from '../../service/reading/ledger-reading.ts';

/**
 * Whether an actor may read an event now (decisions.md, section 5): of a ledger's own events everyone who sees the ledger, of a
 * master's events who reads that master, so that a delegate of one master never gets a sibling's. Throws what is not about access.
 */
export async function mayReadEvent(
  reading: LedgerReading,
  actorId: string,
  ledgerId: string,
  masterId: string | null,
): Promise<boolean> {
  if (masterId === null) return reading.seesSome(ledgerId, actorId);
  try {
    await reading.readableMaster(masterId, actorId);
    return true;
  } catch (error) {
    if (error instanceof LedgerError && (error.code === 'not_found' || error.code === 'access_expired')) return false;
    throw error;
  }
}
