import type { ActorType, CommandKey } from './event.ts';
import type { GrantScope } from './grant.ts';
import type { LedgerFacts } from './ledger-facts.ts';
import { grantedType, revokedType } from './service-events.ts';

/** The actor's signature as verified at the transport. */
export interface CommandSignature {
  /** base64 */
  readonly signature: string;
  readonly keyId: string;
  /** The signed form, canonical JSON; the same text as the payload where that was signed. */
  readonly signedForm: string;
}

/**
 * Commands of one lane are carried out in order: when one of them fails in a way that a retry may mend, those behind it that were sent
 * already fail too, so that the sender can send them again behind it.
 */
export interface Lane {
  /** Unique among lanes. */
  readonly id: string;
  readonly index: number;
  /** The index before, while its outcome is still open; null where nothing is open. */
  readonly previous: number | null;
}

/** Who asks, and under which name the same command, sent again, is found. Plain data: a command may cross to another node. */
export interface CommandBase {
  readonly ledgerId: string;
  readonly actorId: string;
  readonly actorType: ActorType;
  /** null: an actor without keys, or a call that asks for no signature. The authority seals the event then. */
  readonly signature: CommandSignature | null;
  /** Whether an actor who has, or ever had, a key may leave the signature out. */
  readonly signatureRule: 'if_keyed' | 'optional';
  /** None for a command without a key; two for a signed command under header identity that has an idempotency key as well. */
  readonly marks: readonly CommandKey[];
  /** Another node may have carried it out, or be at it: outside a lane it waits for its twin instead of being refused, and no refusal of it is certain. */
  readonly resubmitted?: boolean;
  /** The command's place among those that its sender wants carried out in order; null for one that stands alone. */
  readonly lane?: Lane | null;
  /** Milliseconds since 1970: after it, a command that was not sent to the store is dropped. */
  readonly deadline: number;
}

/** The first events of a ledger. Sent again it finds its own ledger and changes nothing. */
export interface OpenLedger extends CommandBase {
  readonly kind: 'open_ledger';
  readonly facts: Omit<LedgerFacts, 'ledgerId' | 'createdAt' | 'genesisHash'>;
  /** FACILITY_ROOT: the canonical payload of ORGANIZATION_REGISTERED. */
  readonly registeredPayload: string | null;
}

export interface CreateMaster extends CommandBase {
  readonly kind: 'create_master';
  readonly masterId: string;
  readonly businessRef: string;
  readonly scope: string;
}

export interface AppendEvent extends CommandBase {
  readonly kind: 'append_event';
  readonly masterId: string;
  readonly eventType: string;
  /** Canonical, after injection. */
  readonly payload: string;
  readonly causedByHash: string | null;
}

export interface CloseMaster extends CommandBase {
  readonly kind: 'close_master';
  readonly masterId: string;
}

export interface CloseLedger extends CommandBase {
  readonly kind: 'close_ledger';
}

export interface GrantAccess extends CommandBase {
  readonly kind: 'grant';
  readonly scope: GrantScope;
  /** Set at master scope. */
  readonly masterId: string | null;
  readonly linkId: string;
  readonly delegateActorId: string;
  readonly role: string;
  /** Canonical JSON object. */
  readonly permissions: string;
  readonly expiresAt: string | null;
  /** The request's own fields as canonical JSON: what is signed where it is signed. */
  readonly requested: string;
}

export interface RevokeAccess extends CommandBase {
  readonly kind: 'revoke';
  readonly scope: GrantScope;
  readonly masterId: string | null;
  /** By delegate, or by link where the call names a link. */
  readonly delegateActorId: string | null;
  readonly linkId: string | null;
}

export type Command = OpenLedger | CreateMaster | AppendEvent | CloseMaster | CloseLedger | GrantAccess | RevokeAccess;

/** The type of the event that a command writes (of several, the first): what an actor's signature of the command covers. */
export function commandEventType(command: Command): string {
  switch (command.kind) {
    case 'open_ledger':
      return 'GENESIS';
    case 'create_master':
      return 'TRACELEDGER_MASTER_CREATED';
    case 'append_event':
      return command.eventType;
    case 'close_master':
      return 'MASTER_CLOSED';
    case 'close_ledger':
      return 'LEDGER_CLOSED';
    case 'grant':
      return grantedType[command.scope];
    case 'revoke':
      return revokedType[command.scope];
  }
}

/** The master that a command concerns, or null. */
export function commandMaster(command: Command): string | null {
  switch (command.kind) {
    case 'create_master':
    case 'append_event':
    case 'close_master':
      return command.masterId;
    case 'grant':
    case 'revoke':
      return command.masterId;
    case 'open_ledger':
    case 'close_ledger':
      return null;
  }
}
