import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Metadata, Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';
import { type AppendStream, type AppendStreamOptions, createClient } from '../../src/client/index.ts';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../src/gen/google/rpc/status_pb.ts';
import {
  type AppendEventsRequest,
  AppendEventsRequestSchema,
  AppendEventsResponseSchema,
} from '../../src/gen/svc/v1/masters_pb.ts';

export type Duplex = ServerDuplexStream<Buffer, Buffer>;
type Answer = MessageInitShape<typeof AppendEventsResponseSchema>;

/** A service that records what it gets on each stream, and answers as told. */
export interface StreamingService {
  readonly grpcUrl: string;
  readonly streams: AppendEventsRequest[][];
  /** How long the client waited before each of its retries, ms. */
  readonly waits: number[];
  open(options?: AppendStreamOptions): AppendStream;
}

export type OnRequest = (
  request: AppendEventsRequest,
  send: (answer: Answer) => void,
  stream: Duplex,
  streamNumber: number,
) => void;

/** Started for one test, which ends its streams, its client and it. */
export async function streamingService(
  onRequest: OnRequest,
  onEnd: (stream: Duplex) => void = (stream) => stream.end(),
): Promise<StreamingService> {
  const streams: AppendEventsRequest[][] = [];
  const asIs = (bytes: Buffer) => bytes;
  const started = new Server();
  const append = {
    path: '/svc.v1.MasterService/AppendEvents',
    requestStream: true,
    responseStream: true,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
  started.addService(
    { append },
    {
      append: (stream: Duplex) => {
        const requests: AppendEventsRequest[] = [];
        const number = streams.push(requests) - 1;
        const send = (answer: Answer) => {
          const bytes = toBinary(AppendEventsResponseSchema, create(AppendEventsResponseSchema, answer));
          stream.write(Buffer.from(bytes));
        };
        stream.on('data', (bytes: Buffer) => {
          const request = fromBinary(AppendEventsRequestSchema, bytes);
          requests.push(request);
          onRequest(request, send, stream, number);
        });
        stream.on('end', () => onEnd(stream));
        stream.on('error', () => {});
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    started.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const waits: number[] = [];
  const made = createClient({
    grpcUrl: `http://127.0.0.1:${port}`,
    transport: 'grpc',
    apiKey: 'k',
    retryClock: { monotonicMs: () => 0, sleep: async (ms) => void waits.push(ms), random: () => 0 },
  });
  const opened: AppendStream[] = [];
  onTestFinished(async () => {
    await Promise.all(opened.map((stream) => stream.close()));
    await made.close();
    started.forceShutdown();
  });
  const open = (options?: AppendStreamOptions) => {
    const stream = made.appendStream(options);
    opened.push(stream);
    return stream;
  };
  return { grpcUrl: `http://127.0.0.1:${port}`, streams, open, waits };
}

export const uuid = 'm';
export const event = (n: number) => ({ uuid, eventType: 'E', payload: { n } });
export const appended = ({ clientIndex, uuid, eventType }: AppendEventsRequest, replayed = false): Answer => ({
  clientIndex,
  outcome: {
    case: 'appended',
    value: { event: { traceledgerMasterUuid: uuid, eventType, seq: clientIndex + 10n, status: 'recorded' }, replayed },
  },
});
export const refused = (
  { clientIndex }: AppendEventsRequest,
  code: string,
  resumeFrom?: bigint,
  details: object = { why: 1 },
): Answer => ({
  clientIndex,
  outcome: {
    case: 'error',
    value: {
      code,
      message: 'no',
      details: JSON.stringify(details),
      ...(resumeFrom === undefined ? {} : { resumeFrom }),
    },
  },
});
/** The numbers of the events that were sent. */
export const numbers = (requests: readonly AppendEventsRequest[] = []) =>
  requests.map(({ payload }) => (JSON.parse(payload) as { n: number }).n);

/** What becomes of `count` events that are appended to one stream: `ok`, or the code of the error. */
export async function codesOf(onRequest: OnRequest, count: number, options?: AppendStreamOptions) {
  const { open, streams } = await streamingService(onRequest);
  const stream = open(options);
  const outcomes = await Promise.allSettled(Array.from({ length: count }, (_, n) => stream.append(event(n))));
  const codes = outcomes.map((outcome) => (outcome.status === 'fulfilled' ? 'ok' : String(outcome.reason.code)));
  return { codes, sent: streams.map(numbers) };
}

/** What ends a stream, with ErrorInfo where there is a reason. */
export function statusError(code: number, reason?: string) {
  const metadata = new Metadata();
  if (reason !== undefined) {
    const info = anyPack(
      ErrorInfoSchema,
      create(ErrorInfoSchema, { reason, domain: 'svc', metadata: { request_id: 'r' } }),
    );
    metadata.set(
      'grpc-status-details-bin',
      Buffer.from(toBinary(StatusSchema, create(StatusSchema, { code, details: [info] }))),
    );
  }
  return Object.assign(new Error('no'), { code, details: 'no', metadata });
}
