import { LedgerError } from '../../domain/errors.ts';
import type { LedgerReading } from '../../service/reading/ledger-reading.ts';

/**
 * Whether an actor may read an event now. An event of the ledger itself (`masterId` null) may be read by every actor
 * that sees the ledger; an event of a master only by those that may read this master. So a delegate of one master never
 * gets the events of another one. Rejects with errors that are not about access.
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
