import { LedgerError } from '../../domain/errors.ts';
import { isUuid } from '../../domain/uuid.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { Call } from '../call.ts';
import { callerOf } from '../call-caller.ts';
import { rootLedgerId } from '../parties/entities.ts';
import { firstOrganizationOf, organizationCollection } from '../parties/organization-record.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import { subscriptionsIn } from '../webhooks/subscription-record.ts';

/**
 * Says which ledger a call names, once it is known how the call ended: for its caller's access history, refused calls too (decisions.md,
 * section 5: audit). Of a request that was refused unread it gets what could be read; other fields are empty. A promise: when
 * it is said; it never rejects.
 */
export type Naming<Request> = (request: Request, call: Call, refused: boolean) => Promise<void> | undefined;

/** The ARL of an entity's actor, which has the same id whether it was opened or not. */
export function nameRootLedger(call: Call, actorId: string): undefined {
  if (isUuid(actorId)) call.named(rootLedgerId(actorId));
  return undefined;
}

/**
 * Which ledger a master or an organization belongs to, as far as the caller may know: an access history must not tell a
 * stranger that an object exists. What answers `not_found` stands under no ledger.
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

  /** `refused`: it is not certain yet that the caller may see the master. What is no id names nothing. */
  master(call: Call, masterId: string, refused: boolean): Promise<void> | undefined {
    const known = refused ? null : this.#reading.knownMaster(masterId);
    if (known === null)
      return isUuid(masterId) ? this.#note(call, () => this.#ledgerOfMaster(call, masterId)) : undefined;
    call.named(known.ledgerId);
    return undefined;
  }

  /** By the organization's id, or by that of the actor whose first one is meant. */
  organization(call: Call, id: string): Promise<void> | undefined {
    return isUuid(id) ? this.#note(call, () => this.#ledgerOfOrganization(call, id)) : undefined;
  }

  /** The ledger that a caller's own subscription is for; it may be for all. */
  async subscription(call: Call, id: string): Promise<void> {
    try {
      const subscription = isUuid(id) ? await this.#subscriptions.get(id) : null;
      if (subscription?.actorId !== callerOf(call).actorId) return;
      if (subscription.ledgerId !== null) call.named(subscription.ledgerId);
    } catch {
      // The call itself has met the same store.
    }
  }

  /** Naming must not change how a call ends: where the store cannot say, the call stands under no ledger. */
  async #note(call: Call, find: () => Promise<string | null>): Promise<void> {
    let ledgerId: string | null = null;
    try {
      ledgerId = await find();
    } catch {
      // The call itself has met the same store.
    }
    call.named(ledgerId);
  }

  async #ledgerOfMaster(call: Call, masterId: string): Promise<string | null> {
    const ledgerId = (await this.#reading.masterFacts(masterId))?.ledgerId ?? null;
    if (ledgerId === null) return null;
    return this.#ifVisible(ledgerId, async () => {
      await this.#reading.readableMaster(masterId, callerOf(call).actorId);
    });
  }

  async #ledgerOfOrganization(call: Call, id: string): Promise<string | null> {
    const { actorId } = callerOf(call);
    const held = (await this.#organizations.get(id))?.value ?? (await firstOrganizationOf(this.#organizations, id));
    if (held === null) return null;
    if (held.actorId === actorId) return held.frlLedgerId;
    const root = await this.#reading.ledgerFacts(held.frlLedgerId);
    const standing = root === null ? 'none' : await this.#reading.organizationStanding(root, actorId);
    return standing === 'none' ? null : held.frlLedgerId;
  }

  /** A grant that has run out was one: its holder knows what it was for. */
  async #ifVisible(ledgerId: string, check: () => Promise<void>): Promise<string | null> {
    try {
      await check();
    } catch (error) {
      if (!(error instanceof LedgerError) || error.code !== 'access_expired') return null;
    }
    return ledgerId;
  }
}
