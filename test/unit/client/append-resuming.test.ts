import { status } from '@grpc/grpc-js';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { GrpcAppendStream } from '../../../src/client/append/append-stream.ts';
import { createGrpcTransport } from '../../../src/client/call/grpc-transport.ts';
import { LedgerTrustError } from '../../../src/client/error.ts';
import type { AppendStreamOptions } from '../../../src/client/index.ts';
import type { Facts } from '../../../src/client/signing/facts.ts';
import type { Signer } from '../../../src/client/signing/signing.ts';
import type { AppendEventsRequest } from '../../../src/gen/svc/v1/masters_pb.ts';
import {
  appended,
  codesOf,
  type Duplex,
  event,
  numbers,
  type OnRequest,
  refused,
  statusError,
  streamingService,
} from '../../support/streaming-service.ts';

describe('an append stream that fails', () => {
  it('resumes on a new stream from the first event that failed, with the same keys and indices', async () => {
    let failed = 0;
    const { open, streams } = await streamingService((request, send, _stream, number) => {
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
  });

  it.each([
    [7, 7_000],
    [999_999, 60_000],
  ])('waits before it resumes as long as the service asks, a minute at most: %s s', async (asked, waitMs) => {
    const { open, waits } = await streamingService((request, send, _stream, number) => {
      send(number === 0 ? refused(request, 'rate_limited', 0n, { retry_after_s: asked }) : appended(request));
    });
    await open().append(event(0));
    expect(waits).toEqual([waitMs]);
  });

  it('sends no further event on a stream with a failed event', async () => {
    const { codes, sent } = await codesOf(
      (request, send, _stream, number) => send(number === 0 ? refused(request, 'unavailable', 0n) : appended(request)),
      3,
      { maxInFlight: 1, maxQueued: 10 },
    );
    expect({ codes, sent }).toEqual({ codes: ['ok', 'ok', 'ok'], sent: [[0], [0, 1, 2]] });
  });

  it('continues after a broken connection', async () => {
    const { open, streams } = await streamingService((request, send, stream, number) => {
      if (number === 0 && request.clientIndex === 1n) stream.emit('error', statusError(status.UNAVAILABLE));
      else send(appended(request));
    });
    const stream = open();
    const outcomes = await Promise.all([0, 1, 2].map((n) => stream.append(event(n))));
    expect(outcomes.map(({ seq }) => seq)).toEqual([10, 11, 12]);
    expect(numbers(streams[1])).toEqual([1, 2]);
  });

  it('continues after the service ended the stream', async () => {
    const { open, streams } = await streamingService((request, send, stream, number) => {
      send(appended(request));
      if (number === 0) stream.end();
    });
    const stream = open({ maxInFlight: 1, maxQueued: 10 });
    for (const n of [0, 1]) await stream.append(event(n));
    expect(streams.map(numbers)).toEqual([[0], [1]]);
  });

  it('fails all open events when the credential is refused', async () => {
    const { codes } = await codesOf(
      (_request, _send, stream) => void stream.emit('error', statusError(status.UNAUTHENTICATED, 'invalid_api_key')),
      2,
    );
    expect(codes).toEqual(['invalid_api_key', 'invalid_api_key']);
  });

  it('fails the open events after its attempts without an outcome', async () => {
    const { codes, sent } = await codesOf(
      (request, send) => send(refused(request, 'unavailable', request.clientIndex)),
      1,
      { attemptsMax: 3 },
    );
    expect({ codes, sent }).toEqual({ codes: ['unavailable'], sent: [[0], [0], [0]] });
  });

  it('reports connection_lost for an event that a lost connection may have written', async () => {
    const answering: OnRequest = (request, send, stream, number) => {
      if (number === 0) stream.emit('error', statusError(status.UNAVAILABLE));
      else send(refused(request, 'unavailable', request.clientIndex));
    };
    const { codes, sent } = await codesOf(answering, 1, { attemptsMax: 3 });
    expect({ codes, sent }).toEqual({ codes: ['connection_lost'], sent: [[0], [0], [0]] });
  });

  it('reports outcome_unknown for an event, whatever other events of the stream were answered', async () => {
    const answering: OnRequest = (request, send, stream, number) => {
      if (number > 0) stream.emit('error', statusError(status.UNAVAILABLE, 'unavailable'));
      // Of two ledgers: each has its own index to go on from.
      else if (request.clientIndex === 1n) {
        send(refused({ ...request, clientIndex: 0n }, 'unavailable', 0n));
        send(refused(request, 'outcome_unknown', 1n));
      }
    };
    const { codes } = await codesOf(answering, 2, { attemptsMax: 2 });
    expect(codes).toEqual([expect.not.stringMatching('ok'), 'outcome_unknown']);
  });

  it('reports connection_lost for a sent event without an outcome when its stream ends', async () => {
    const answering: OnRequest = (request, send, stream, number) => {
      if (number > 0) stream.emit('error', statusError(status.UNAVAILABLE, 'unavailable'));
      else if (request.clientIndex === 1n) {
        send(refused({ ...request, clientIndex: 0n }, 'unavailable', 0n));
        stream.end();
      }
    };
    const { codes } = await codesOf(answering, 2, { attemptsMax: 2 });
    expect(codes).toEqual([expect.not.stringMatching('ok'), 'connection_lost']);
  });

  // not_sent: the client was closed, and the connection of its stream still stands.
  it.each(['unavailable', 'not_sent'] as const)(
    'sends nothing behind an event that could not be prepared (%s), and continues with later ones',
    async (code) => {
      const { grpcUrl, streams } = await streamingService((request, send) => send(appended(request)));
      let failing = false;
      const facts = {
        master: async (masterId: string) => {
          if (failing && masterId === 'slow') throw new LedgerTrustError(code, 'no');
          return { masterId, ledgerId: 'l', businessRef: 'r', scope: 's' };
        },
        ledger: async () => ({ ledgerId: 'l', type: 'bilateral' }),
      } as unknown as Facts;
      const signer = { keyId: 'k', sign: async () => 'signature' } as unknown as Signer;
      const transport = createGrpcTransport(grpcUrl, {});
      const clock = { monotonicMs: () => 0, sleep: async () => {}, random: () => 0 };
      const credential = { apiKey: 'k', signer };
      let ids = 0;
      const parts = { transport, credential, facts, clock, newId: () => `id-${ids++}` };
      const stream = new GrpcAppendStream(parts, {});
      await stream.append(event(0));
      failing = true;
      const outcomes = await Promise.allSettled([
        stream.append(event(1)),
        stream.append({ ...event(2), uuid: 'slow' }),
        stream.append(event(3)),
      ]);
      expect(outcomes.map(({ status: how }) => how)).toEqual(['fulfilled', 'rejected', 'rejected']);
      for (const outcome of outcomes.slice(1)) expect(outcome).toMatchObject({ reason: { code } });
      failing = false;
      await stream.append(event(4));
      expect(streams.flatMap((requests) => numbers(requests))).toEqual([0, 1, 4]);
      await stream.close();
      await transport.close();
    },
  );
});

describe('a service that has answered every event and does not end the stream', () => {
  const stallMs = 20_000;
  /** Waits without timers, which are fake here. */
  const until = async (isSo: () => boolean): Promise<void> => {
    const endMs = performance.now() + 4_000;
    while (!isSo() && performance.now() < endMs) await new Promise(setImmediate);
    expect(isSo()).toBe(true);
  };

  /** Answers on the first stream when told, and does not end it. Later streams are answered at once and ended. */
  const hangingService = async (refusedIndex: bigint | null, options?: AppendStreamOptions) => {
    const answers: (() => void)[] = [];
    const first: Duplex[] = [];
    let hasEnded = false;
    const service = await streamingService(
      (request, send, stream, number) => {
        if (number > 0) return send(appended(request));
        first.push(stream);
        const isRefused = request.clientIndex === refusedIndex;
        answers.push(() => send(isRefused ? refused(request, 'unavailable', request.clientIndex) : appended(request)));
      },
      (stream) => {
        hasEnded = true;
        if (!first.includes(stream)) stream.end();
      },
    );
    const stream = service.open(options);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => {
      vi.useRealTimers();
      first[0]?.end();
    });
    /** Whether the client has ended its side of a stream. */
    const clientEnded = () => until(() => hasEnded);
    return { stream, streams: service.streams, answers, clientEnded };
  };

  it('does not keep close() from resolving', async () => {
    const { stream, answers, clientEnded } = await hangingService(null);
    const outcome = stream.append(event(0));
    await until(() => answers.length === 1);
    let isClosed = false;
    void stream.close().then(() => {
      isClosed = true;
    });
    await clientEnded();
    answers[0]?.();
    expect(await outcome).toMatchObject({ seq: 10 });
    await vi.advanceTimersByTimeAsync(stallMs);
    await until(() => isClosed);
  });

  it('does not keep an event that may be sent again from a new stream', async () => {
    const { stream, streams, answers, clientEnded } = await hangingService(0n);
    const [first, second] = [0, 1].map((n) => stream.append(event(n)));
    await until(() => answers.length === 2);
    answers[0]?.();
    await clientEnded();
    answers[1]?.();
    expect(await second).toMatchObject({ seq: 11 });
    await vi.advanceTimersByTimeAsync(stallMs);
    await until(() => streams.length === 2);
    expect(await first).toMatchObject({ seq: 10 });
  });

  it('does not make uncertain an event that was refused unwritten', async () => {
    const { stream, answers, clientEnded } = await hangingService(0n, { attemptsMax: 1 });
    const outcome = stream.append(event(0)).catch((error: unknown) => error);
    await until(() => answers.length === 1);
    answers[0]?.();
    await clientEnded();
    await vi.advanceTimersByTimeAsync(stallMs);
    expect(await outcome).toMatchObject({ code: 'unavailable' });
  });
});
