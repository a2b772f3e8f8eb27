import type { ActorType, CommandKey } from '../event/event.ts';
import type { LedgerFacts } from '../event/facts.ts';
import type { GrantScope } from '../event/grant.ts';
import { grantedType, revokedType } from '../event/service-events.ts';

/** The actor's signature. It was verified when the call came in. */
export interface CommandSignature {
  /** base64 */
  readonly signature: string;
  readonly keyId: string;
  /** Canonical JSON. It equals the payload if that itself was signed. */
  readonly signedForm: string;
}

/**
 * Commands of one lane are carried out in order. When one fails in a way that a retry may mend, those behind it fail
 * too. So the client can send all of them again in order.
 */
export interface Lane {
  readonly id: string;
  readonly index: number;
  /** The command before this one, while its outcome is open. null if no command of the lane is open. */
  readonly previous: number | null;
}

/** Plain data, which may go to another node. */
export interface CommandBase {
  readonly ledgerId: string;
  readonly actorId: string;
  readonly actorType: ActorType;
  /** null: the authority seals the event. */
  readonly signature: CommandSignature | null;
  /** 'if_keyed': an actor that ever had a key must sign. */
  readonly signatureRule: 'if_keyed' | 'optional';
  /** Two for a signed command under header identity that has an idempotency key as well. */
  readonly commandKeys: readonly CommandKey[];
  /**
   * The command may have been sent before, to this node or another one: no refusal of it is certain. Outside of a lane
   * it waits for the command in flight with the same key.
   */
  readonly resubmitted?: boolean;
  readonly lane?: Lane | null;
  /** Of the call that it comes from, for the log. A node of an earlier version leaves it out. */
  readonly requestId?: string;
  /**
   * ms since 1970, by the clock of the node that took the call. A command that was not sent to the store by then is
   * dropped.
   */
  readonly deadline: number;
}

/** Sent again, it finds its own ledger and changes nothing. */
export interface OpenLedger extends CommandBase {
  readonly kind: 'open_ledger';
  readonly facts: Omit<LedgerFacts, 'ledgerId' | 'createdAt' | 'genesisHash'>;
  /** The canonical payload of ORGANIZATION_REGISTERED, of a FACILITY_ROOT. */
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
  /** Canonical JSON, with the injected fields. */
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
  readonly masterId: string | null;
  readonly linkId: string;
  readonly delegateActorId: string;
  readonly role: string;
  /** Canonical JSON object. */
  readonly permissions: string;
  readonly expiresAt: string | null;
  /** The request's own fields, canonical JSON. An actor's signature covers this text. */
  readonly requested: string;
}

export interface RevokeAccess extends CommandBase {
  readonly kind: 'revoke';
  readonly scope: GrantScope;
  readonly masterId: string | null;
  /** If it is null, `linkId` names the grant. */
  readonly delegateActorId: string | null;
  readonly linkId: string | null;
}

export type Command = OpenLedger | CreateMaster | AppendEvent | CloseMaster | CloseLedger | GrantAccess | RevokeAccess;

/** A command without the fields that it has of its call. */
export type Unkeyed<C extends CommandBase> = Omit<C, 'actorId' | 'actorType' | 'commandKeys' | 'deadline'>;
export type UnkeyedCommand = Command extends infer C ? (C extends Command ? Unkeyed<C> : never) : never;

/** Of the first event that a command writes. An actor's signature covers it. */
export function commandEventType(command: UnkeyedCommand): string {
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

export function commandMaster(command: Command): string | null {
  return 'masterId' in command ? command.masterId : null;
}
