import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { Metadata, Server, ServerCredentials, type ServerDuplexStream, status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { openAppendStream } from '../../src/client/append-stream.ts';
import { LedgerTrustError } from '../../src/client/error.ts';
import type { Facts } from '../../src/client/facts.ts';
import { createGrpcTransport } from '../../src/client/grpc-transport.ts';
import {
  type AppendStream,
  type AppendStreamOptions,
  createClient,
  type LedgerTrustClient,
} from '../../src/client/index.ts';
import type { Signer } from '../../src/client/signing.ts';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../src/gen/google/rpc/status_pb.ts';
import {
  type AppendEventsRequest,
  AppendEventsRequestSchema,
  AppendEventsResponseSchema,
} from '../../src/gen/svc/v1/masters_pb.ts';

type Duplex = ServerDuplexStream<Buffer, Buffer>;
type Answer = MessageInitShape<typeof AppendEventsResponseSchema>;

/** A service that records what it gets on each stream, and answers as told. */
interface Fake {
  readonly grpcUrl: string;
  readonly streams: AppendEventsRequest[][];
  readonly client: LedgerTrustClient;
  open(options?: AppendStreamOptions): AppendStream;
}

let server: Server | null = null;
let client: LedgerTrustClient | null = null;

afterEach(async () => {
  await client?.close();
  server?.forceShutdown();
  client = server = null;
});

type OnRequest = (
  request: AppendEventsRequest,
  send: (answer: Answer) => void,
  stream: Duplex,
  streamNumber: number,
) => void;

async function fake(onRequest: OnRequest, onEnd: (stream: Duplex) => void = (stream) => stream.end()): Promise<Fake> {
  const streams: AppendEventsRequest[][] = [];
  const asIs = (bytes: Buffer) => bytes;
  const started = new Server();
  server = started;
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
  const made = createClient({
    grpcUrl: `http://127.0.0.1:${port}`,
    transport: 'grpc',
    apiKey: 'k',
    retryClock: { monotonicMs: () => 0, sleep: async () => {}, random: () => 0 },
  });
  client = made;
  return { grpcUrl: `http://127.0.0.1:${port}`, streams, client: made, open: (options) => made.appendStream(options) };
}

const uuid = 'm';
const event = (n: number) => ({ uuid, eventType: 'E', payload: { n } });
const appended = ({ clientIndex, uuid, eventType }: AppendEventsRequest, replayed = false): Answer => ({
  clientIndex,
  outcome: {
    case: 'appended',
    value: { event: { traceledgerMasterUuid: uuid, eventType, seq: clientIndex + 10n, status: 'recorded' }, replayed },
  },
});
const refused = ({ clientIndex }: AppendEventsRequest, code: string, resumeFrom?: bigint): Answer => ({
  clientIndex,
  outcome: {
    case: 'error',
    value: { code, message: 'no', details: '{"why":1}', ...(resumeFrom === undefined ? {} : { resumeFrom }) },
  },
});
const numbers = (requests: readonly AppendEventsRequest[] = []) =>
  requests.map(({ payload }) => (JSON.parse(payload) as { n: number }).n);

function statusError(code: number, reason?: string) {
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

describe('an append stream', () => {
  it('sends events in order and settles each with its own outcome', async () => {
    const { open, streams } = await fake((request, send) =>
      send(request.clientIndex === 1n ? refused(request, 'master_closed') : appended(request)),
    );
    const stream = open();
    const outcomes = await Promise.allSettled([0, 1, 2].map((n) => stream.append(event(n))));
    await stream.close();
    expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[0]).toMatchObject({ value: { seq: 10, replayed: false, traceledgerMasterUuid: 'm' } });
    expect(outcomes[1]).toMatchObject({ reason: { code: 'master_closed', message: 'no', details: { why: 1 } } });
    expect(numbers(streams[0])).toEqual([0, 1, 2]);
    expect(new Set(streams[0]?.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(3);
    expect(streams).toHaveLength(1);
  });

  it('resumes on a new stream from the first event that failed, with the same keys and indices', async () => {
    let failed = 0;
    const { open, streams } = await fake((request, send, _stream, number) => {
      if (number === 0 && request.clientIndex >= 2n) {
        failed += 1;
        send(refused(request, failed === 1 ? 'outcome_unknown' : 'unavailable', 2n));
      } else send(appended(request, number === 1 && request.clientIndex === 2n));
    });
    const stream = open();
    const outcomes = await Promise.all([0, 1, 2, 3, 4].map((n) => stream.append(event(n))));
    expect(outcomes.map(({ seq }) => seq)).toEqual([10, 11, 12, 13, 14]);
    expect(outcomes.map(({ replayed }) => replayed)).toEqual([false, false, true, false, false]);
    expect(numbers(streams[1])).toEqual([2, 3, 4]);
    const keysOf = (requests: readonly AppendEventsRequest[] = []) =>
      new Map(requests.map((request) => [request.clientIndex, request.idempotencyKey]));
    const [first, second] = streams.map(keysOf);
    for (const [index, key] of second ?? []) if (first?.has(index)) expect(first.get(index)).toBe(key);
    await stream.close();
  });

  it('sends no event behind a failed one on the old stream once it knows of the failure', async () => {
    const { open, streams } = await fake((request, send, _stream, number) =>
      send(number === 0 ? refused(request, 'unavailable', 0n) : appended(request)),
    );
    const stream = open({ maxInFlight: 1, maxQueued: 10 });
    await Promise.all([0, 1, 2].map((n) => stream.append(event(n))));
    expect(streams.map(numbers)).toEqual([[0], [0, 1, 2]]);
    await stream.close();
  });

  it('goes on after its connection broke', async () => {
    const { open, streams } = await fake((request, send, stream, number) => {
      if (number === 0 && request.clientIndex === 1n) stream.emit('error', statusError(status.UNAVAILABLE));
      else send(appended(request));
    });
    const stream = open();
    const outcomes = await Promise.all([0, 1, 2].map((n) => stream.append(event(n))));
    expect(outcomes.map(({ seq }) => seq)).toEqual([10, 11, 12]);
    expect(numbers(streams[1])).toEqual([1, 2]);
    await stream.close();
  });

  it('goes on after the service ended the stream in an orderly way', async () => {
    const { open, streams } = await fake((request, send, stream, number) => {
      send(appended(request));
      if (number === 0) stream.end();
    });
    const stream = open({ maxInFlight: 1, maxQueued: 10 });
    for (const n of [0, 1]) await stream.append(event(n));
    expect(streams.map(numbers)).toEqual([[0], [1]]);
    await stream.close();
  });

  it('fails all open events when the credential is refused', async () => {
    const { open } = await fake(
      (_request, _send, stream) => void stream.emit('error', statusError(status.UNAUTHENTICATED, 'invalid_api_key')),
    );
    const stream = open();
    const outcomes = await Promise.allSettled([0, 1].map((n) => stream.append(event(n))));
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'invalid_api_key' } });
    await stream.close();
  });

  it('fails the open events after its connections in a row brought nothing', async () => {
    const { open, streams } = await fake((request, send) => send(refused(request, 'unavailable', request.clientIndex)));
    const stream = open({ attemptsMax: 3 });
    await expect(stream.append(event(0))).rejects.toMatchObject({ code: 'unavailable' });
    expect(streams).toHaveLength(3);
    await stream.close();
  });

  it('calls nothing unwritten that a lost connection took with it', async () => {
    const { open, streams } = await fake((request, send, stream, number) => {
      if (number === 0) stream.emit('error', statusError(status.UNAVAILABLE));
      else send(refused(request, 'unavailable', request.clientIndex));
    });
    const stream = open({ attemptsMax: 3 });
    await expect(stream.append(event(0))).rejects.toMatchObject({ code: 'connection_lost' });
    expect(streams).toHaveLength(3);
    await stream.close();
  });

  it('calls nothing unwritten whose outcome was unknown, whatever another event of the same stream was told', async () => {
    const { open } = await fake((request, send, stream, number) => {
      if (number > 0) stream.emit('error', statusError(status.UNAVAILABLE, 'unavailable'));
      // Of two ledgers: each has its own index to go on from.
      else if (request.clientIndex === 1n) {
        send(refused({ ...request, clientIndex: 0n }, 'unavailable', 0n));
        send(refused(request, 'outcome_unknown', 1n));
      }
    });
    const stream = open({ attemptsMax: 2 });
    const outcomes = await Promise.allSettled([stream.append(event(0)), stream.append(event(1))]);
    expect(outcomes).toMatchObject([{ status: 'rejected' }, { reason: { code: 'outcome_unknown' } }]);
    await stream.close();
  });

  it('calls nothing unwritten that was sent and has no outcome when its stream ends', async () => {
    const { open } = await fake((request, send, stream, number) => {
      if (number > 0) stream.emit('error', statusError(status.UNAVAILABLE, 'unavailable'));
      else if (request.clientIndex === 1n) {
        send(refused({ ...request, clientIndex: 0n }, 'unavailable', 0n));
        stream.end();
      }
    });
    const stream = open({ attemptsMax: 2 });
    const outcomes = await Promise.allSettled([stream.append(event(0)), stream.append(event(1))]);
    expect(outcomes).toMatchObject([{ status: 'rejected' }, { reason: { code: 'connection_lost' } }]);
    await stream.close();
  });

  it('sends nothing behind an event that could not be made ready for now, and goes on with what comes after', async () => {
    const { grpcUrl, streams } = await fake((request, send) => send(appended(request)));
    let failing = false;
    const facts = {
      master: async (masterId: string) => {
        if (failing && masterId === 'slow') throw new LedgerTrustError('unavailable', 'no');
        return { masterId, ledgerId: 'l', businessRef: 'r', scope: 's' };
      },
      ledger: async () => ({ ledgerId: 'l', type: 'bilateral' }),
    } as unknown as Facts;
    const signer = { keyId: 'k', sign: async () => 'signature' } as unknown as Signer;
    const transport = createGrpcTransport({ grpcUrl, ca: undefined, channel: undefined });
    const clock = { monotonicMs: () => 0, sleep: async () => {}, random: () => 0 };
    const credential = { apiKey: 'k', signer };
    let ids = 0;
    const stream = openAppendStream({ transport, credential, facts, clock, newId: () => `id-${ids++}` }, {});
    await stream.append(event(0));
    failing = true;
    const outcomes = await Promise.allSettled([
      stream.append(event(1)),
      stream.append({ ...event(2), uuid: 'slow' }),
      stream.append(event(3)),
    ]);
    expect(outcomes.map(({ status: how }) => how)).toEqual(['fulfilled', 'rejected', 'rejected']);
    for (const outcome of outcomes.slice(1)) expect(outcome).toMatchObject({ reason: { code: 'unavailable' } });
    failing = false;
    await stream.append(event(4));
    expect(streams.flatMap((requests) => numbers(requests))).toEqual([0, 1, 4]);
    await stream.close();
    await transport.close();
  });

  it('has no more events in flight than it may', async () => {
    const waiting: (() => void)[] = [];
    let most = 0;
    const { open } = await fake((request, send) => {
      waiting.push(() => send(appended(request)));
      most = Math.max(most, waiting.length);
      if (waiting.length === 2)
        setTimeout(() => {
          for (const answer of waiting.splice(0)) answer();
        }, 10);
    });
    const stream = open({ maxInFlight: 2, maxQueued: 10 });
    await Promise.all([0, 1, 2, 3, 4, 5].map((n) => stream.append(event(n))));
    expect(most).toBe(2);
    await stream.close();
  });

  it('refuses more events than it may hold, and says to wait for ready', async () => {
    const release: (() => void)[] = [];
    const { open } = await fake((request, send) => void release.push(() => send(appended(request))));
    const stream = open({ maxInFlight: 2, maxQueued: 2 });
    const taken = [stream.append(event(0)), stream.append(event(1))];
    await expect(stream.append(event(2))).rejects.toMatchObject({ code: 'not_sent' });
    let ready = false;
    const waiting = stream.ready().then(() => {
      ready = true;
    });
    await expect.poll(() => release.length).toBe(2);
    expect(ready).toBe(false);
    for (const answer of release) answer();
    await Promise.all([...taken, waiting]);
    await stream.close();
  });

  it('rejects an event that is none alone, and keeps its place empty', async () => {
    const { open, streams } = await fake((request, send) => send(appended(request)));
    const stream = open();
    const odd = { uuid, eventType: 'E', payload: { n: Number.NaN } };
    const outcomes = await Promise.allSettled([stream.append(event(0)), stream.append(odd), stream.append(event(2))]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(streams[0]?.map(({ clientIndex }) => clientIndex)).toEqual([0n, 2n]);
    await stream.close();
  });

  it('once closed takes no events and has handed out all outcomes', async () => {
    const late = (stream: Duplex) => void setTimeout(() => stream.end(), 40);
    const { open } = await fake((request, send) => void setTimeout(() => send(appended(request)), 20), late);
    const stream = open();
    let done = false;
    void stream.append(event(0)).then(() => {
      done = true;
    });
    await stream.close();
    expect(done).toBe(true);
    await expect(stream.append(event(1))).rejects.toMatchObject({ code: 'not_sent' });
  });

  it('that never took an event closes without a connection', async () => {
    const { open, streams } = await fake(() => {});
    await open().close();
    expect(streams).toHaveLength(0);
  });

  it('aborted rejects open events and further ones with the reason', async () => {
    const controller = new AbortController();
    const { open, streams } = await fake(() => {});
    const stream = open({ signal: controller.signal });
    const taken = stream.append(event(0));
    await expect.poll(() => streams[0]?.length).toBe(1);
    controller.abort(new Error('enough'));
    await expect(taken).rejects.toThrow('enough');
    await expect(stream.append(event(1))).rejects.toThrow('enough');
    await stream.close();
  });

  it('that gets an outcome of an event that it never sent fails instead of guessing', async () => {
    const { open } = await fake((request, send) => send({ ...appended(request), clientIndex: 99n }));
    const stream = open();
    await expect(stream.append(event(0))).rejects.toMatchObject({ code: 'invalid_answer' });
    await stream.close();
  });
});

describe('appendAll', () => {
  it('hands out outcomes in the order of the events, refusals among them', async () => {
    const { open } = await fake((request, send) => {
      // Later events are answered first.
      setTimeout(
        () => send(request.clientIndex === 1n ? refused(request, 'invalid_argument') : appended(request)),
        30 - 10 * Number(request.clientIndex),
      );
    });
    const stream = open();
    const outcomes: (number | string)[] = [];
    for await (const { appended, error } of stream.appendAll([0, 1, 2].map(event))) {
      outcomes.push(appended?.seq ?? (error as { code: string }).code);
    }
    expect(outcomes).toEqual([10, 'invalid_argument', 12]);
    await stream.close();
  });

  it('takes from its source no more than it may send, and ends the source when left early', async () => {
    let taken = 0;
    let ended = false;
    const source = async function* () {
      try {
        for (;;) {
          taken += 1;
          yield event(taken);
        }
      } finally {
        ended = true;
      }
    };
    const { open } = await fake((request, send) => send(appended(request)));
    const stream = open({ maxInFlight: 3, maxQueued: 3 });
    let seen = 0;
    for await (const { error } of stream.appendAll(source())) {
      expect(error).toBeNull();
      if (++seen === 10) break;
    }
    expect(ended).toBe(true);
    expect(taken).toBeLessThanOrEqual(14);
    await stream.close();
  });
});
