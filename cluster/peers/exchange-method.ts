import { fromBinary, toBinary } from '@bufbuild/protobuf';
import type { MethodDefinition } from '@grpc/grpc-js';
import {
  type ExchangeRequest,
  ExchangeRequestSchema,
  type ExchangeResponse,
  ExchangeResponseSchema,
  PeerService,
} from '../../src/gen/svc/cluster/v1/peers_pb.ts';

/** In the metadata of a stream. */
export const secretKey = 'x-cluster-secret';

/** Metadata that a peer answers a stream with that it has accepted: nothing is sent before. */
export const acceptedKey = 'x-cluster-node';

/** PeerService.Exchange for grpc-js. */
export const exchangeMethod: MethodDefinition<ExchangeRequest, ExchangeResponse> = {
  path: `/${PeerService.typeName}/${PeerService.method.exchange.name}`,
  requestStream: true,
  responseStream: true,
  requestSerialize: (message) => Buffer.from(toBinary(ExchangeRequestSchema, message)),
  requestDeserialize: (bytes) => fromBinary(ExchangeRequestSchema, bytes),
  responseSerialize: (message) => Buffer.from(toBinary(ExchangeResponseSchema, message)),
  responseDeserialize: (bytes) => fromBinary(ExchangeResponseSchema, bytes),
};

/** One message holds at most this much, so that one that is large does not hold up the others for long. */
export const messageItemsMax = 256;
export const messageBytesMax = 512 * 1024;
/** A command has at most some 1 MiB of payload, twice where a signed form differs, escaped. */
export const messageReceiveMaxBytes = 16 * 1024 * 1024;
