export type LedgerType = 'ORDER' | 'FACILITY_ROOT' | 'ENTITY_ROOT' | 'ENGAGEMENT';

export type ActorType = 'human' | 'service' | 'external' | 'device';

export const actorTypes: ReadonlySet<string> = new Set<ActorType>(['human', 'service', 'external', 'device']);

export interface MasterLink {
  readonly id: string;
  /** content_hash of the previous event of this master, hex; '' for the first one. */
  readonly prevHash: string;
  readonly seq: number;
}

/** What content_hash covers (docs/verifying.md, section 2). */
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
  /** ISO 8601 UTC with three decimals. Never goes back within a ledger. */
  readonly createdAt: string;
  readonly causedByHash: string | null;
  readonly master: MasterLink | null;
  /** SHA-256 of the canonical payload, hex. */
  readonly payloadHash: string;
  /** Ed25519 signature, base64; null if the authority seals the event. */
  readonly actorSig: string | null;
  /** SHA-256 of the canonical signed payload, hex; null if the payload itself was signed, or nothing was signed. */
  readonly actorSigPayloadHash: string | null;
  readonly signingKeyId: string | null;
}

/** An event of the chain. Payloads are canonical JSON text. */
export interface LedgerEvent extends EventContent {
  readonly payload: string;
  readonly actorSigPayload: string | null;
  readonly contentHash: string;
  /** Hash of the previous event, hex; '' for GENESIS. Of answers only proofs of inclusion show it. */
  readonly prevHash: string;
  readonly hash: string;
  readonly authoritySig: string | null;
  readonly authorityKeyId: string | null;
  /** The keys of the command that made the event. Never shown to clients. */
  readonly commands: readonly CommandKey[];
}

/** Of a command key that is not permanent. */
export const commandKeyLifeMs = 24 * 60 * 60_000;

/** Identifies the command of an event: sent again, its event is found and nothing is written. */
export interface CommandKey {
  /** From the calling actor and its idempotency key, or from a signature under header identity. */
  readonly id: string;
  /** Hash of the request. With another fingerprint, a key was used for two calls. */
  readonly fingerprint: string;
  /** For ever: signed events under header identity. Otherwise for 24 hours. */
  readonly permanent: boolean;
}
