import type { MethodDefinition } from '@grpc/grpc-js';
import { PeerService } from '../../src/gen/svc/cluster/v1/peers_pb.ts';

const asItIs = (frame: Buffer): Buffer => frame;

/** PeerService.Exchange for grpc-js. Its messages are frames: what they hold is made and read by the stream's own wire (wire.ts). */
export const exchangeMethod: MethodDefinition<Buffer, Buffer> = {
  path: `/${PeerService.typeName}/${PeerService.method.exchange.name}`,
  requestStream: true,
  responseStream: true,
  requestSerialize: asItIs,
  requestDeserialize: asItIs,
  responseSerialize: asItIs,
  responseDeserialize: asItIs,
};

/** One message holds at most this much, so that one that is large does not hold up the others for long. */
export const messageItemsMax = 256;
export const messageBytesMax = 512 * 1024;
/**
 * A frame of commands. An append with 256 KiB of payload fits, twice where a signed form differs, escaped as JSON in JSON. A caller that is
 * not proved to be a node yet makes this one hold as much.
 */
export const commandsFrameMaxBytes = 4 * 1024 * 1024;
/** A command beyond this fits no frame, beside its number and the seal. */
export const commandMaxBytes = commandsFrameMaxBytes - 64 * 1024;
/** A frame of answers, which only a proved node sends: an event has its payload and its signed form, and what the owner adds. */
export const answersFrameMaxBytes = 16 * 1024 * 1024;
