import type { MessageInitShape } from '@bufbuild/protobuf';
import type { LedgerEvent } from '../../domain/event.ts';
import type { EventSchema } from '../../gen/svc/v1/event_pb.ts';

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
