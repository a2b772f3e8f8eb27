/** Types of ledgers (spec: Ledger). */
export type LedgerType = 'ORDER' | 'FACILITY_ROOT' | 'ENTITY_ROOT' | 'ENGAGEMENT';

/** What kind of author an actor is (decisions.md, section 4). */
export type ActorType = 'human' | 'service' | 'external' | 'device';

/** An event's place among the events of its master. */
export interface MasterLink {
  readonly id: string;
  /** content_hash of the previous event of this master, hex; '' for its first. */
  readonly prevHash: string;
  /** Counts from 0 within the master. */
  readonly seq: number;
}

/** What the hash of an event covers, beside its place behind the previous event (decisions.md, section 6). */
export interface EventContent {
  /** UUIDv7 whose time is createdAt. */
  readonly id: string;
  readonly ledgerId: string;
  /** Counts from 0 (GENESIS) within the ledger. */
  readonly seq: number;
  readonly eventType: string;
  /** null only on GENESIS. */
  readonly actorId: string | null;
  readonly actorType: ActorType;
  /** ISO 8601 UTC with three decimals; never goes back within a ledger. */
  readonly createdAt: string;
  readonly causedByHash: string | null;
  readonly master: MasterLink | null;
  /** SHA-256 of the canonical payload, hex. */
  readonly payloadHash: string;
  /** Ed25519 signature, base64; null where the authority seals the event. */
  readonly actorSig: string | null;
  /** SHA-256 of the canonical signed payload, hex; null where the payload itself was signed, or nothing was. */
  readonly actorSigPayloadHash: string | null;
  readonly signingKeyId: string | null;
}

/** An event as it stands in the chain. Payloads are canonical JSON text. */
export interface LedgerEvent extends EventContent {
  readonly payload: string;
  readonly actorSigPayload: string | null;
  readonly contentHash: string;
  /** Hash of the event before, hex; '' for GENESIS. Never shown to clients. */
  readonly prevHash: string;
  readonly hash: string;
  readonly authoritySig: string | null;
  readonly authorityKeyId: string | null;
  /** The names of the command that made the event (see CommandMark). Never shown to clients. */
  readonly commands: readonly CommandKey[];
}

/** For so long a mark that is not permanent counts (decisions.md, section 1). */
export const commandKeyLifeMs = 24 * 60 * 60_000;

/** Names the command that an event came from, so that the same command, sent again, is found instead of repeated. */
export interface CommandKey {
  /** Derived from the calling actor and its idempotency key, or from a signature under header identity. */
  readonly id: string;
  /** Hash of what was asked. The same id with another fingerprint is a key used twice. */
  readonly fingerprint: string;
  /** The mark counts for ever (signed events under header identity) and not just for 24 hours. */
  readonly permanent: boolean;
}
