import type { ActorType, CommandKey } from '../event/event.ts';
import type { GrantScope } from '../event/grant.ts';
import type { LedgerFacts } from '../event/ledger-facts.ts';
import { grantedType, revokedType } from '../event/service-events.ts';

/** The actor's signature. It was verified when the call came in. */
export interface CommandSignature {
  /** base64 */
  readonly signature: string;
  readonly keyId: string;
  /** The signed form, canonical JSON. It equals the payload if the payload itself was signed. */
  readonly signedForm: string;
}

/**
 * Commands of one lane are carried out in order. When a command fails in a way that a retry may mend, the commands
 * behind it that were already sent fail too. So the client can send all of them again in order.
 */
export interface Lane {
  /** Unique among lanes. */
  readonly id: string;
  readonly index: number;
  /**
   * The index of the command before this one, while its outcome is still open. null if no command of the lane is open.
   */
  readonly previous: number | null;
}

/**
 * Who asks, and the keys under which the same command is found when it is sent again. Plain data: a command may be sent
 * to another node.
 */
export interface CommandBase {
  readonly ledgerId: string;
  readonly actorId: string;
  readonly actorType: ActorType;
  /** null: an actor without keys, or a call that needs no signature. The authority seals the event then. */
  readonly signature: CommandSignature | null;
  /** 'if_keyed': an actor that has, or ever had, a key must sign. 'optional': any actor may leave the signature out. */
  readonly signatureRule: 'if_keyed' | 'optional';
  /**
   * The command's keys. Empty for a command without a key. Two for a signed command under header identity that has an
   * idempotency key as well.
   */
  readonly commandKeys: readonly CommandKey[];
  /**
   * The command may have been sent before, to this node or another one. Outside of a lane it waits for the command in
   * flight with the same key instead of being refused. No refusal of it is certain.
   */
  readonly resubmitted?: boolean;
  /** The command's place in a lane. null if the command belongs to no lane. */
  readonly lane?: Lane | null;
  /** Milliseconds since 1970. A command that was not sent to the store by then is dropped. */
  readonly deadline: number;
}

/** Writes the first events of a ledger. Sent again, it finds its own ledger and changes nothing. */
export interface OpenLedger extends CommandBase {
  readonly kind: 'open_ledger';
  readonly facts: Omit<LedgerFacts, 'ledgerId' | 'createdAt' | 'genesisHash'>;
  /** FACILITY_ROOT: the canonical payload of ORGANIZATION_REGISTERED. null for other types. */
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
  /** null unless the scope is 'master'. */
  readonly masterId: string | null;
  readonly linkId: string;
  readonly delegateActorId: string;
  readonly role: string;
  /** Canonical JSON object. */
  readonly permissions: string;
  readonly expiresAt: string | null;
  /** The request's own fields as canonical JSON. An actor's signature covers this text. */
  readonly requested: string;
}

export interface RevokeAccess extends CommandBase {
  readonly kind: 'revoke';
  readonly scope: GrantScope;
  readonly masterId: string | null;
  /** The delegate whose grant ends. If it is null, `linkId` names the grant. */
  readonly delegateActorId: string | null;
  readonly linkId: string | null;
}

export type Command = OpenLedger | CreateMaster | AppendEvent | CloseMaster | CloseLedger | GrantAccess | RevokeAccess;

/** The type of the first event that a command writes. An actor's signature of the command covers it. */
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

/** The master that a command concerns. Returns null if there is none. */
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
