import type { MessageInitShape } from '@bufbuild/protobuf';
import type { LedgerEvent } from '../../domain/event.ts';
import { EventSchema } from '../../gen/svc/v1/event_pb.ts';

/** An event as clients read it: everything that its content holds, so that they can rebuild it; never the previous hash. */
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

/** What the JSON of every event has: its names and what stands between. */
const namesBytes = EventSchema.fields.reduce((sum, { name }) => sum + `"${name}":,`.length, '{}'.length - 1);

/**
 * Bytes of an event's JSON as REST writes it, counted and not written. JSON text stands there as it is; no other text of an event has
 * anything to escape, unless its row was damaged.
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
