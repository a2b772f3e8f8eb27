import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import {
  appended,
  type Duplex,
  event,
  numbers,
  refused,
  statusError,
  streamingService,
} from '../../support/streaming-service.ts';

const lost = () => statusError(status.UNAVAILABLE);
const unknown = () => statusError(status.DEADLINE_EXCEEDED, 'outcome_unknown');
const keyRevoked = () => statusError(status.UNAUTHENTICATED, 'invalid_api_key');
const end = (stream: Duplex, error: Error) => void stream.emit('error', error);
/** What each promise was rejected with. */
const codesOf = async (promises: readonly Promise<unknown>[]) =>
  Promise.all(
    promises.map((promise) =>
      promise.then(
        () => 'ok',
        (error: { code: string }) => error.code,
      ),
    ),
  );

describe('an event that may be written', () => {
  it.each([
    ['lost', lost, 'connection_lost'],
    ['ended by the service before all outcomes were there', unknown, 'outcome_unknown'],
  ])('stays uncertain if its credential is refused after its connection was %s', async (_how, ending, told) => {
    const { open, streams } = await streamingService((_request, _send, stream, number) =>
      end(stream, number === 0 ? ending() : keyRevoked()),
    );
    const stream = open({ maxInFlight: 1, maxQueued: 10 });
    const codes = await codesOf([stream.append(event(0)), stream.append(event(1))]);
    // The second one was never sent.
    expect(codes).toEqual([told, 'invalid_api_key']);
    expect(streams.map(numbers)).toEqual([[0], [0]]);
    await stream.close();
  });

  it.each([
    ['credential is refused', keyRevoked, 'invalid_api_key'],
    [
      'next event is refused for its size',
      () => statusError(status.RESOURCE_EXHAUSTED, 'payload_too_large'),
      'payload_too_large',
    ],
  ])('stays uncertain if its outcome was unknown and then the %s', async (_what, ending, told) => {
    const { open } = await streamingService((request, send, stream, number) => {
      if (number > 0) end(stream, ending());
      else if (request.clientIndex === 0n) send(refused(request, 'outcome_unknown', 0n));
      else end(stream, ending());
    });
    const stream = open();
    const codes = await codesOf([stream.append(event(0)), stream.append(event(1))]);
    expect(codes).toEqual(['outcome_unknown', told]);
    await stream.close();
  });

  it.each(['signing_key_revoked', 'invalid_signature', 'internal'])(
    'stays uncertain after %s, which does not depend on what was written',
    async (code) => {
      const { open } = await streamingService((request, send, stream, number) => {
        if (number === 0) end(stream, lost());
        else send(refused(request, code));
      });
      const stream = open({ maxInFlight: 1, maxQueued: 10 });
      // The second one was sent once, so that its refusal is all that there is to know of it.
      const codes = await codesOf([stream.append(event(0)), stream.append(event(1))]);
      expect(codes).toEqual(['connection_lost', code]);
      await stream.close();
    },
  );

  it.each(['permission_denied', 'master_closed', 'idempotency_key_reused'])(
    'fails with %s, which is decided after a look for the event',
    async (code) => {
      const { open } = await streamingService((request, send, stream, number) => {
        if (number === 0) end(stream, lost());
        else send(refused(request, code));
      });
      const stream = open();
      expect(await codesOf([stream.append(event(0))])).toEqual([code]);
      await stream.close();
    },
  );

  it('stays uncertain if other events got outcomes and then the credential ended', async () => {
    const { open } = await streamingService((request, send, stream, number) => {
      if (number === 0 && request.clientIndex === 1n) end(stream, lost());
      else if (number === 1) end(stream, keyRevoked());
      else send(appended(request));
    });
    const stream = open({ maxInFlight: 2, maxQueued: 10 });
    const codes = await codesOf([stream.append(event(0)), stream.append(event(1))]);
    expect(codes).toEqual(['ok', 'connection_lost']);
    await stream.close();
  });
});
