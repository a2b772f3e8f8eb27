import { authorityDigest, contentHash, contentJson, eventHash } from '../event/content.ts';
import type { LedgerEvent, MasterLink } from '../event/event.ts';
import { sha256Hex } from '../keys/hash.ts';
import type { Draft } from './decide.ts';

export interface Place {
  /** UUIDv7 whose time is createdAt. */
  readonly id: string;
  readonly ledgerId: string;
  readonly seq: number;
  readonly prevHash: string;
  readonly createdAt: string;
  readonly master: MasterLink | null;
}

export interface AuthoritySigner {
  /** `svc:authority#key-<n>` */
  readonly keyId: string;
  /**
   * Ed25519 (base64) of a 32-byte digest. `createdAt`: of the event (ISO). Throws LedgerError `unavailable` if it is
   * not certain that the key is in use at that time.
   */
  sign(digest: Uint8Array, createdAt: string): string;
}

/**
 * An event without an actor's signature gets the authority's seal. `content`: the canonical JSON of its content. Throws
 * LedgerError `unavailable` if the authority cannot sign.
 */
export function sealEvent(
  draft: Draft,
  place: Place,
  authority: AuthoritySigner,
): { event: LedgerEvent; content: string } {
  const inside = {
    id: place.id,
    ledgerId: place.ledgerId,
    seq: place.seq,
    eventType: draft.eventType,
    actorId: draft.actorId,
    actorType: draft.actorType,
    createdAt: place.createdAt,
    causedByHash: draft.causedByHash,
    master: place.master,
    payloadHash: sha256Hex(draft.payload),
    actorSig: draft.actorSig,
    actorSigPayloadHash: draft.actorSigPayload === null ? null : sha256Hex(draft.actorSigPayload),
    signingKeyId: draft.signingKeyId,
  };
  const content = contentJson(inside);
  const contentHashHex = contentHash(content);
  const hash = eventHash(place.prevHash, contentHashHex);
  const sealed = draft.actorSig === null;
  const event: LedgerEvent = {
    ...inside,
    payload: draft.payload,
    actorSigPayload: draft.actorSigPayload,
    contentHash: contentHashHex,
    prevHash: place.prevHash,
    hash,
    authoritySig: sealed ? authority.sign(authorityDigest(hash), place.createdAt) : null,
    authorityKeyId: sealed ? authority.keyId : null,
    commands: draft.commands,
  };
  return { event, content };
}
