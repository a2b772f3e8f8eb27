import type { MessageInitShape } from '@bufbuild/protobuf';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { EventSchema } from '../../gen/svc/v1/event_pb.ts';

/** An event as clients read it: all that the content hash covers, and never the previous hash. */
export function eventMessage(event: LedgerEvent): MessageInitShape<typeof EventSchema> {
  return {
    id: event.id,
    ledgerId: event.ledgerId,
    seq: BigInt(event.seq),
    masterId: event.master?.id,
    masterSeq: event.master === null ? undefined : BigInt(event.master.seq),
    eventType: event.eventType,
    actorId: event.actorId ?? undefined,
    actorType: event.actorType,
    payload: event.payload,
    hash: event.hash,
    contentHash: event.contentHash,
    causedByHash: event.causedByHash ?? undefined,
    actorSig: event.actorSig ?? undefined,
    signingKeyId: event.signingKeyId ?? undefined,
    actorSigPayload: event.actorSigPayload ?? undefined,
    authoritySig: event.authoritySig ?? undefined,
    authorityKeyId: event.authorityKeyId ?? undefined,
    createdAt: event.createdAt,
  };
}

/** Bytes of the field names and punctuation in an event's JSON. */
const namesBytes = EventSchema.fields.reduce((sum, { name }) => sum + `"${name}":,`.length, '{}'.length - 1);

/**
 * Bytes of an event's JSON as REST writes it, counted without writing it. JSON text is embedded as it is, and no other
 * text of an event needs escaping, unless its row is damaged.
 */
export function eventJsonBytes(event: LedgerEvent): number {
  const { payload, actorSigPayload, ...others } = eventMessage(event);
  let bytes = namesBytes + Buffer.byteLength(payload ?? '') + Buffer.byteLength(actorSigPayload ?? 'null');
  for (const value of Object.values(others)) {
    if (typeof value === 'string') bytes += value.length + '""'.length;
    else bytes += value === undefined ? 'null'.length : String(value).length;
  }
  return bytes;
}
