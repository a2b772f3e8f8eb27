import type { MethodDefinition } from '@grpc/grpc-js';
import { PeerService } from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import { smallRequestBytes } from '../../src/runtime/limits/memory-budget.ts';

const asItIs = (frame: Buffer): Buffer => frame;

/** PeerService.Exchange for grpc-js, with frames as bytes. ClientWire and ServerWire encode and decode them. */
export const exchangeMethod: MethodDefinition<Buffer, Buffer> = {
  path: `/${PeerService.typeName}/${PeerService.method.exchange.name}`,
  requestStream: true,
  responseStream: true,
  requestSerialize: asItIs,
  requestDeserialize: asItIs,
  responseSerialize: asItIs,
  responseDeserialize: asItIs,
};

/**
 * Bounds of one message, so that a large message does not delay the others for long. No node sends more items in a
 * repeated field, and none reads a message with more.
 */
export const messageItemsMax = 256;
export const messageBytesMax = 512 * 1024;
/**
 * Of all that is in one message, at any depth. A full message has some 2,000 fields; a later version may have others
 * beside them.
 */
export const messageFieldsMax = 8_192;
/**
 * Limit of a frame of commands, also of callers that have not authenticated yet. It fits an append with a payload and
 * another signed form of 256 KiB each, both escaped as JSON within JSON.
 */
export const commandsFrameMaxBytes = 4 * 1024 * 1024;
/** Limit of a command. The rest of the frame is for its number and the seal. */
export const commandMaxBytes = commandsFrameMaxBytes - 64 * 1024;

/** As what the memory budget counts a command. */
export function commandKind(bytes: number): 'small' | 'peer' {
  return bytes <= smallRequestBytes ? 'small' : 'peer';
}
/** Limit of a frame of answers, which only authenticated nodes send. */
export const answersFrameMaxBytes = 16 * 1024 * 1024;
