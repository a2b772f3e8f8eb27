import { LedgerError } from '../../domain/errors.ts';
import { isUuid } from '../../domain/values/uuid-form.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import { rootLedgerId } from '../entities/entities.ts';
import { findOrganization, organizationCollection } from '../organizations/organization-record.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import { subscriptionsIn } from '../webhooks/subscription-record.ts';

/**
 * Reports with `call.named` which ledger a call names, for the caller's access history. It runs once the call has
 * ended, also for refused calls (`refused`). A request that was refused before it was decoded has the fields that could
 * be read; its other fields are empty. Returns a promise if the ledger has to be looked up; the promise never rejects.
 */
export type Naming<Request> = (request: Request, call: Call, refused: boolean) => Promise<void> | undefined;

/** Names the root ledger (ARL) of an entity's actor. Its id is derived, whether it was opened or not. */
export function nameRootLedger(call: Call, actorId: string): undefined {
  if (isUuid(actorId)) call.named(rootLedgerId(actorId));
  return undefined;
}

/**
 * Finds the ledger of a master or an organization, as far as the caller may know it: an access history must not tell a
 * stranger that an object exists. A call that answers `not_found` names no ledger. An id that is no UUID names nothing.
 */
export class LedgerNaming {
  readonly #reading: LedgerReading;
  readonly #organizations;
  readonly #subscriptions;

  constructor(reading: LedgerReading, records: RecordStore) {
    this.#reading = reading;
    this.#organizations = organizationCollection(records);
    this.#subscriptions = subscriptionsIn(records);
  }

  /** `refused`: whether the caller may see the master is not certain yet. */
  master(call: Call, masterId: string, refused: boolean): Promise<void> | undefined {
    const known = refused ? null : this.#reading.knownMaster(masterId);
    if (known !== null) call.named(known.ledgerId);
    else if (isUuid(masterId)) return this.#note(call, () => this.#ledgerOfMaster(call, masterId));
    return undefined;
  }

  /** `id` is the organization's, or that of an actor whose oldest organization is meant. */
  organization(call: Call, id: string): Promise<void> | undefined {
    return isUuid(id) ? this.#note(call, () => this.#ledgerOfOrganization(call, id)) : undefined;
  }

  /** Names the ledger of the caller's own subscription. A subscription to all ledgers names none. */
  async subscription(call: Call, id: string): Promise<void> {
    try {
      const subscription = isUuid(id) ? await this.#subscriptions.get(id) : null;
      if (subscription?.actorId !== callerOf(call).actorId) return;
      if (subscription.ledgerId !== null) call.named(subscription.ledgerId);
    } catch {
      // The call itself has met and reported the same failure.
    }
  }

  /** A failed look-up must not change how the call ends. The call is then kept without a ledger. */
  async #note(call: Call, find: () => Promise<string | null>): Promise<void> {
    let ledgerId: string | null = null;
    try {
      ledgerId = await find();
    } catch {
      // The call itself has met and reported the same failure.
    }
    call.named(ledgerId);
  }

  async #ledgerOfMaster(call: Call, masterId: string): Promise<string | null> {
    const facts = await this.#reading.masterFacts(masterId);
    if (facts === null) return null;
    return ifVisible(facts.ledgerId, () => this.#reading.readableMaster(masterId, callerOf(call).actorId));
  }

  async #ledgerOfOrganization(call: Call, id: string): Promise<string | null> {
    const { actorId } = callerOf(call);
    const found = await findOrganization(this.#organizations, id);
    if (found === null || found.actorId === actorId) return found?.frlLedgerId ?? null;
    return ifVisible(found.frlLedgerId, () => this.#reading.readableOrganization(found.frlLedgerId, actorId));
  }
}

/**
 * Returns the ledger id, or null if `check` refuses. An expired grant counts as visible: its holder knows what it was
 * for.
 */
async function ifVisible(ledgerId: string, check: () => unknown): Promise<string | null> {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'access_expired') return null;
  }
  return ledgerId;
}
