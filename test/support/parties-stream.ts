import type { Message } from '@bufbuild/protobuf';
import type { Client, ClientDuplexStream } from '@grpc/grpc-js';
import { type AppendEventsResponse, MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { openGrpcStream } from './grpc-client.ts';
import { type Master, type Party, signatureOf } from './parties.ts';
import type { Fields } from './parties-rest.ts';

/** A request of AppendEvents in plain form. */
export interface StreamedEvent {
  readonly clientIndex: bigint;
  readonly uuid: string;
  readonly eventType: string;
  readonly payload: string;
  readonly [more: string]: unknown;
}

/** An event NOTED as it goes over the stream, signed. */
export function streamed(master: Master, by: Party, index: number, payload: Fields, more: Fields = {}): StreamedEvent {
  const signature = signatureOf(by.key.privateKey, 'NOTED', master.ledgerId, { ...payload, ...master.injected });
  return {
    clientIndex: BigInt(index),
    uuid: master.uuid,
    eventType: 'NOTED',
    payload: JSON.stringify(payload),
    ...(by.kid === null ? {} : { signingKeyId: by.kid, actorSig: signature }),
    ...more,
  };
}

export interface StreamOutcome {
  readonly index: number;
  /** null: it was recorded. */
  readonly code: string | null;
  readonly resumeFrom: number | null;
  readonly answer: AppendEventsResponse;
}

export function outcomeOf(message: Message): StreamOutcome {
  const answer = message as AppendEventsResponse;
  const error = answer.outcome.case === 'error' ? answer.outcome.value : null;
  return {
    index: Number(answer.clientIndex),
    code: error?.code ?? null,
    resumeFrom: error?.resumeFrom === undefined ? null : Number(error.resumeFrom),
    answer,
  };
}

/** What was recorded; throws for a refusal. */
export function appended({ answer }: StreamOutcome) {
  if (answer.outcome.case !== 'appended')
    throw new Error(`not appended: ${answer.outcome.value?.code} ${answer.outcome.value?.message}`);
  return answer.outcome.value;
}

export function openStream(client: Client, by: Pick<Party, 'bearer'>): ClientDuplexStream<object, Message> {
  return openGrpcStream(client, MasterService.method.appendEvents, by.bearer);
}

/** Sends all, ends the stream, and waits for all outcomes. Rejects where the stream itself fails. */
export async function sendAll(
  client: Client,
  by: Pick<Party, 'bearer'>,
  events: readonly StreamedEvent[],
): Promise<StreamOutcome[]> {
  const stream = openStream(client, by);
  const outcomes: StreamOutcome[] = [];
  stream.on('data', (message: Message) => outcomes.push(outcomeOf(message)));
  const ended = new Promise<void>((resolve, reject) => {
    stream.once('end', resolve);
    stream.once('error', reject);
  });
  for (const one of events) stream.write(one);
  stream.end();
  await ended;
  return outcomes;
}
