import {
  create,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { Client, ClientDuplexStream, Metadata, ServiceError } from '@grpc/grpc-js';
import { clientClosed, decoding, invalidAnswer } from '../error.ts';
import type { Headers, LiveMessage, Received, Transport, Wire } from '../transport.ts';
import { answerFromMessage, liveField } from './answer-decoding.ts';
import type { ClientOptions } from './client-options.ts';
import { grpcError, isServiceError, textOf } from './grpc-error.ts';
import { messageInit } from './request-encoding.ts';

/** A page of events is 2 MiB of JSON. One event and its signed form may come on top. */
const MESSAGE_MAX_BYTES = 16 * 1024 * 1024;

const STATUS_OK = 0;

interface Opened {
  readonly client: Client;
  metadataOf(headers: Headers): Metadata;
}

/** A transport that also opens the one method that streams in both directions. */
export interface GrpcTransport extends Transport {
  /** Its errors are ServiceErrors (grpcStreamError). Rejects with LedgerTrustError `not_sent` if it is closed. */
  duplex(rpcPath: string, headers: Headers): Promise<ClientDuplexStream<Buffer, Buffer>>;
}

const asIs = (bytes: Buffer): Buffer => bytes;

export function createGrpcTransport(grpcUrl: string, { ca, grpcChannel }: ClientOptions): GrpcTransport {
  const url = new URL(grpcUrl);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError('grpcUrl must be an http or https URL');
  if (url.pathname !== '/' || url.search !== '') throw new TypeError('grpcUrl is an address alone');
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  let isClosed = false;
  let opened: Promise<Opened> | null = null;
  /** grpc-js is loaded with the first call: callers of REST alone need not wait for it. */
  const open = async (): Promise<Opened> => {
    const { Client, credentials, Metadata } = await import('@grpc/grpc-js');
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
    const metadataOf = (headers: Headers): Metadata => {
      const metadata = new Metadata();
      for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
      return metadata;
    };
    return { client, metadataOf };
  };
  const connection = async (): Promise<Opened> => {
    if (isClosed) throw clientClosed();
    opened ??= open();
    const { client, metadataOf } = await opened;
    if (isClosed) throw clientClosed();
    return { client, metadataOf };
  };

  /** The messages of a method that answers with a stream. Ending the iteration early cancels the call. */
  async function* frames(wire: Wire, headers: Headers, signal: AbortSignal): AsyncIterable<Buffer> {
    signal.throwIfAborted();
    const { client, metadataOf } = await connection();
    signal.throwIfAborted();
    const call = client.makeServerStreamRequest(wire.path, asIs, asIs, bufferOf(wire.body), metadataOf(headers));
    const abort = (): void => call.cancel();
    signal.addEventListener('abort', abort, { once: true });
    try {
      for await (const bytes of call) yield bytes as Buffer;
    } catch (thrown) {
      if (signal.aborted) throw signal.reason;
      throw isServiceError(thrown) ? grpcError(thrown) : thrown;
    } finally {
      signal.removeEventListener('abort', abort);
      call.cancel();
    }
  }

  return {
    encode(endpoint, given) {
      const input: DescMessage = endpoint.method.input;
      const message = create(input, messageInit(given) as MessageInitShape<DescMessage>);
      return { endpoint, httpMethod: 'POST', path: endpoint.rpcPath, body: toBinary(input, message) };
    },

    async send(wire, headers, signal) {
      signal.throwIfAborted();
      const { client, metadataOf } = await connection();
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
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
      for await (const bytes of frames(wire, headers, signal)) yield decode(wire, bytes);
    },

    async *live(wire, headers, signal) {
      for await (const bytes of frames(wire, headers, signal)) {
        const message = decodeLive(wire, bytes);
        if (message !== null) yield message;
      }
    },

    async duplex(rpcPath, headers) {
      const { client, metadataOf } = await connection();
      return client.makeBidiStreamRequest(rpcPath, asIs, asIs, metadataOf(headers));
    },

    async close() {
      isClosed = true;
      const { client } = (await opened) ?? {};
      client?.close();
    },
  };
}

function received(wire: Wire, bytes: Buffer | undefined, metadata: Metadata | null): Received {
  const requestId = textOf(metadata, 'x-request-id');
  return decoding({ grpcStatus: STATUS_OK, requestId }, () => ({
    answer: decode(wire, bytes ?? Buffer.alloc(0)),
    requestId,
    replayed: textOf(metadata, 'idempotent-replayed') === 'true',
  }));
}

function decode(wire: Wire, bytes: Buffer): Record<string, unknown> {
  return answerFromMessage(wire.endpoint.method.output, messageOf(wire, bytes));
}

/** null: a message of a kind that this client does not know. */
function decodeLive(wire: Wire, bytes: Buffer): LiveMessage | null {
  const { output } = wire.endpoint.method;
  const { message: set } = messageOf(wire, bytes) as LiveAnswer;
  const field = liveField(output, ({ localName }) => localName === set?.case);
  if (field === null || set?.value === undefined) return null;
  return { kind: field.kind, value: answerFromMessage(field.message, set.value) };
}

/** An answer of a live stream, in the shape of its descriptor. */
interface LiveAnswer extends Message {
  readonly message?: { readonly case?: string; readonly value?: Message };
}

function messageOf({ endpoint }: Wire, bytes: Buffer): Message {
  const output: DescMessage = endpoint.method.output;
  try {
    return fromBinary(output, bytes);
  } catch (cause) {
    throw invalidAnswer(`The answer to ${endpoint.name}`, output.typeName, cause);
  }
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
