import type { ActorType, EventContent, LedgerEvent } from '../domain/event/event.ts';
import { canonicalJson } from '../domain/json/canonical.ts';
import { sha256Hex } from '../domain/keys/hash.ts';
import type { Event as EventMessage } from '../gen/svc/v1/event_pb.ts';
import type { Answer } from './shapes.ts';

/** An event as clients read it. It holds everything that its hash covers, except the hashes of the events before it. */
export type Event = Answer<EventMessage>;

/** A read event with its payloads as canonical JSON, and their hashes (SHA-256, hex) as its content holds them. */
export interface ReadEvent {
  readonly event: Event;
  readonly payload: string;
  readonly actorSigPayload: string | null;
  readonly payloadHash: string;
  readonly actorSigPayloadHash: string | null;
}

/** Throws TypeError or LedgerError `invalid_string` for a payload that canonical JSON cannot represent. */
export function readEvent(event: Event): ReadEvent {
  const payload = canonicalJson(event.payload);
  const actorSigPayload = event.actorSigPayload === null ? null : canonicalJson(event.actorSigPayload);
  return {
    event,
    payload,
    actorSigPayload,
    payloadHash: sha256Hex(payload),
    actorSigPayloadHash: actorSigPayload === null ? null : sha256Hex(actorSigPayload),
  };
}

/**
 * What the event's content hash covers (docs/verifying.md, section 2). `masterPrevHash` is the content hash of the
 * event before it in its master, '' for the master's first event.
 */
export function eventContent(read: ReadEvent, masterPrevHash: string): EventContent {
  const { event } = read;
  return {
    id: event.id,
    ledgerId: event.ledgerId,
    seq: event.seq,
    eventType: event.eventType,
    actorId: event.actorId,
    actorType: event.actorType as ActorType,
    createdAt: event.createdAt,
    causedByHash: event.causedByHash,
    master:
      event.masterId === null ? null : { id: event.masterId, prevHash: masterPrevHash, seq: event.masterSeq ?? 0 },
    payloadHash: read.payloadHash,
    actorSig: event.actorSig,
    actorSigPayloadHash: read.actorSigPayloadHash,
    signingKeyId: event.signingKeyId,
  };
}

/** The event as the domain represents it, with '' for the hashes of the events before it, which reads do not show. */
export function ledgerEvent(read: ReadEvent): LedgerEvent {
  const { contentHash, hash, authoritySig, authorityKeyId } = read.event;
  return {
    ...eventContent(read, ''),
    payload: read.payload,
    actorSigPayload: read.actorSigPayload,
    contentHash,
    prevHash: '',
    hash,
    authoritySig,
    authorityKeyId,
    commands: [],
  };
}
