import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  Client,
  type ClientDuplexStream,
  credentials,
  status as grpcStatus,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { clientClosed, decoding, invalidAnswer } from '../error.ts';
import type { Headers, Received, Transport, Wire } from '../transport.ts';
import { answerFromMessage } from './answer-decoding.ts';
import type { ClientOptions } from './client-options.ts';
import { grpcError, textOf } from './grpc-error.ts';
import { messageInit } from './request-encoding.ts';

/** A page of events is 2 MiB of JSON. One event and its signed form may come on top. */
const MESSAGE_MAX_BYTES = 16 * 1024 * 1024;

/** A transport that also opens the one method that streams in both directions. */
export interface GrpcTransport extends Transport {
  /** Its errors are ServiceErrors (grpcStreamError). Throws LedgerTrustError `not_sent` if the transport is closed. */
  duplex(rpcPath: string, headers: Headers): ClientDuplexStream<Buffer, Buffer>;
}

const asIs = (bytes: Buffer): Buffer => bytes;

export function createGrpcTransport(grpcUrl: string, { ca, grpcChannel }: ClientOptions): GrpcTransport {
  const url = new URL(grpcUrl);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError('grpcUrl must be an http or https URL');
  if (url.pathname !== '/' || url.search !== '') throw new TypeError('grpcUrl is an address alone');
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  const channelCredentials =
    url.protocol === 'http:'
      ? credentials.createInsecure()
      : credentials.createSsl(ca === undefined ? null : Buffer.from(ca));
  const client = new Client(`${url.hostname}:${port}`, channelCredentials, {
    'grpc.keepalive_time_ms': 30_000,
    'grpc.keepalive_timeout_ms': 10_000,
    'grpc.max_receive_message_length': MESSAGE_MAX_BYTES,
    // The client retries by itself, with idempotency keys. It could not count the retries of grpc-js.
    'grpc.enable_retries': 0,
    'grpc.initial_reconnect_backoff_ms': 200,
    'grpc.max_reconnect_backoff_ms': 5_000,
    ...grpcChannel,
  });
  let isClosed = false;

  return {
    encode(endpoint, given) {
      const input: DescMessage = endpoint.method.input;
      const message = create(input, messageInit(given) as MessageInitShape<DescMessage>);
      return { endpoint, httpMethod: 'POST', path: endpoint.rpcPath, body: toBinary(input, message) };
    },

    send(wire, headers, signal) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        if (isClosed) return reject(clientClosed());
        const abort = (): void => call.cancel();
        let metadata: Metadata | null = null;
        const done = (error: ServiceError | null, bytes?: Buffer): void => {
          signal.removeEventListener('abort', abort);
          try {
            if (error !== null) throw signal.aborted ? signal.reason : grpcError(error);
            resolve(received(wire, bytes, metadata));
          } catch (thrown) {
            reject(thrown);
          }
        };
        const call = client.makeUnaryRequest(wire.path, asIs, asIs, bufferOf(wire.body), metadataOf(headers), done);
        call.on('metadata', (sent: Metadata) => {
          metadata = sent;
        });
        signal.addEventListener('abort', abort, { once: true });
      });
    },

    async *stream(wire, headers, signal) {
      signal.throwIfAborted();
      if (isClosed) throw clientClosed();
      const call = client.makeServerStreamRequest(wire.path, asIs, asIs, bufferOf(wire.body), metadataOf(headers));
      const abort = (): void => call.cancel();
      signal.addEventListener('abort', abort, { once: true });
      try {
        for await (const bytes of call) yield decode(wire, bytes as Buffer);
      } catch (thrown) {
        if (signal.aborted) throw signal.reason;
        throw isServiceError(thrown) ? grpcError(thrown) : thrown;
      } finally {
        signal.removeEventListener('abort', abort);
        call.cancel();
      }
    },

    duplex(rpcPath, headers) {
      if (isClosed) throw clientClosed();
      return client.makeBidiStreamRequest(rpcPath, asIs, asIs, metadataOf(headers));
    },

    async close() {
      isClosed = true;
      client.close();
    },
  };
}

export function isServiceError(thrown: unknown): thrown is ServiceError {
  return thrown instanceof Error && 'code' in thrown && 'details' in thrown && typeof thrown.code === 'number';
}

function received(wire: Wire, bytes: Buffer | undefined, metadata: Metadata | null): Received {
  const requestId = textOf(metadata, 'x-request-id');
  return decoding({ status: grpcStatus.OK, requestId }, () => ({
    answer: decode(wire, bytes ?? Buffer.alloc(0)),
    requestId,
    replayed: textOf(metadata, 'idempotent-replayed') === 'true',
  }));
}

function decode(wire: Wire, bytes: Buffer): Record<string, unknown> {
  const output: DescMessage = wire.endpoint.method.output;
  let message: ReturnType<typeof fromBinary>;
  try {
    message = fromBinary(output, bytes);
  } catch (cause) {
    throw invalidAnswer(`The answer to ${wire.endpoint.name}`, output.typeName, cause);
  }
  return answerFromMessage(output, message);
}

function metadataOf(headers: Headers): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
