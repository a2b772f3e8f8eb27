import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type handleBidiStreamingCall,
  Metadata,
  Server,
  type ServerDuplexStream,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { Outcome } from '../../src/actors/outcome.ts';
import type { NodeId } from '../../src/actors/placement.ts';
import type { Command } from '../../src/domain/command.ts';
import {
  type AnswerSchema,
  type ExchangeRequest,
  type ExchangeResponse,
  ExchangeResponseSchema,
} from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import { errorAnswer, outcomeAnswer } from './answers.ts';
import { acceptedKey, exchangeMethod, messageReceiveMaxBytes, secretKey } from './exchange-method.ts';
import { Outgoing } from './outgoing.ts';
import { isSecret, type PeerSecurity } from './security.ts';
import { commandOf } from './wire-command.ts';

/** Commands of one peer that are being worked on; then its stream is not read on. */
const underWayMax = 8_192;
/** How often a peer whose commands wait is told that others are carried out. */
const tellWorkEveryMs = 500;
/** What an answer takes beside its row. */
const answerOverheadBytes = 64;

export interface PeerServiceParts {
  readonly self: NodeId;
  readonly security: PeerSecurity;
  /** Directory.carryOut. */
  readonly carryOut: (command: Command) => Promise<Outcome>;
  /** TurnCounts.stood of this node. */
  readonly turnsStood: () => number;
}

type ExchangeCall = ServerDuplexStream<ExchangeRequest, ExchangeResponse>;
type AnswerInit = MessageInitShape<typeof AnswerSchema>;

/** A gRPC server with PeerService alone. It listens nowhere by itself: connections are brought to it. */
export function peerServer(parts: PeerServiceParts): Server {
  const server = new Server({
    'grpc.max_receive_message_length': messageReceiveMaxBytes,
    'grpc.max_send_message_length': messageReceiveMaxBytes,
    'grpc.max_concurrent_streams': 16,
    'grpc.keepalive_time_ms': 10_000,
    'grpc.keepalive_timeout_ms': 5_000,
    'grpc.enable_channelz': 0,
  });
  const exchange: handleBidiStreamingCall<ExchangeRequest, ExchangeResponse> = (call) => serve(parts, call);
  const implementation: UntypedServiceImplementation = { exchange };
  server.addService({ exchange: exchangeMethod }, implementation);
  return server;
}

function serve({ self, security, carryOut, turnsStood }: PeerServiceParts, call: ExchangeCall): void {
  if (security.secret !== null && !isSecret(call.metadata.get(secretKey)[0], security.secret)) {
    call.emit('error', { code: status.UNAUTHENTICATED, details: 'Not a node of this cluster.' });
    return;
  }
  const accepted = new Metadata();
  accepted.set(acceptedKey, self);
  call.sendMetadata(accepted);

  let underWay = 0;
  let over = false;
  let ending = false;
  const write = (answers: AnswerInit[]) => !over && call.write(create(ExchangeResponseSchema, { answers }));
  const outgoing = new Outgoing<AnswerInit>({ write }, sizeOf);
  let stoodBefore = turnsStood();
  const telling = setInterval(() => {
    const stood = turnsStood();
    const works = stood !== stoodBefore;
    stoodBefore = stood;
    if (works && underWay > 0 && outgoing.isOpen) call.write(create(ExchangeResponseSchema, { works }));
  }, tellWorkEveryMs).unref();
  const close = () => {
    over = true;
    clearInterval(telling);
  };
  const endIfDone = () => {
    if (!ending || underWay > 0 || over) return;
    outgoing.flush();
    close();
    call.end();
  };
  const answer = (given: AnswerInit) => {
    underWay--;
    outgoing.push(given);
    if (underWay < underWayMax && call.isPaused()) call.resume();
    endIfDone();
  };
  call.on('data', ({ asks }: ExchangeRequest) => {
    // Handed over in their order, without waiting for one another.
    for (const { id, command } of asks) {
      underWay++;
      carry(carryOut, command).then(
        (outcome) => answer(outcomeAnswer(id, outcome)),
        (error: unknown) => answer(errorAnswer(id, error)),
      );
    }
    if (underWay >= underWayMax) call.pause();
  });
  call.on('drain', () => outgoing.drained());
  call.on('end', () => {
    ending = true;
    endIfDone();
  });
  for (const event of ['cancelled', 'error'] as const) call.on(event, close);
}

async function carry(carryOut: PeerServiceParts['carryOut'], text: string): Promise<Outcome> {
  return carryOut(commandOf(text));
}

function sizeOf({ result }: AnswerInit): number {
  const row = result?.case === 'outcome' ? (result.value.row?.length ?? 0) : 0;
  return row + answerOverheadBytes;
}
