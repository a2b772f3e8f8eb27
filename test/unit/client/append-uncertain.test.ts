import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import {
  appended,
  codesOf,
  type Duplex,
  type OnRequest,
  refused,
  statusError,
} from '../../support/streaming-service.ts';

const lost = () => statusError(status.UNAVAILABLE);
const unknown = () => statusError(status.DEADLINE_EXCEEDED, 'outcome_unknown');
const keyRevoked = () => statusError(status.UNAUTHENTICATED, 'invalid_api_key');
const tooLarge = () => statusError(status.RESOURCE_EXHAUSTED, 'payload_too_large');
const end = (stream: Duplex, error: Error) => void stream.emit('error', error);
/** Loses the first connection, and refuses what is sent afterwards. */
const lostThenRefused =
  (code: string): OnRequest =>
  (request, send, stream, number) => {
    if (number === 0) end(stream, lost());
    else send(refused(request, code));
  };
const oneByOne = { maxInFlight: 1, maxQueued: 10 };

describe('an event that may be written', () => {
  it.each([
    ['lost', lost, 'connection_lost'],
    ['ended by the service before all outcomes were there', unknown, 'outcome_unknown'],
  ])('stays uncertain if its credential is refused after its connection was %s', async (_how, ending, told) => {
    const found = await codesOf(
      (_request, _send, stream, number) => end(stream, number === 0 ? ending() : keyRevoked()),
      2,
      oneByOne,
    );
    // The second one was never sent.
    expect(found).toEqual({ codes: [told, 'invalid_api_key'], sent: [[0], [0]] });
  });

  it.each([
    ['credential is refused', keyRevoked, 'invalid_api_key'],
    ['next event is refused for its size', tooLarge, 'payload_too_large'],
  ])('stays uncertain if its outcome was unknown and then the %s', async (_what, ending, told) => {
    const { codes } = await codesOf((request, send, stream, number) => {
      if (number === 0 && request.clientIndex === 0n) send(refused(request, 'outcome_unknown', 0n));
      else end(stream, ending());
    }, 2);
    expect(codes).toEqual(['outcome_unknown', told]);
  });

  it.each(['signing_key_revoked', 'invalid_signature', 'internal'])(
    'stays uncertain after %s, which does not depend on what was written',
    async (code) => {
      // The second one was sent once, so that its refusal is all that there is to know of it.
      const { codes } = await codesOf(lostThenRefused(code), 2, oneByOne);
      expect(codes).toEqual(['connection_lost', code]);
    },
  );

  it.each(['permission_denied', 'master_closed', 'idempotency_key_reused'])(
    'fails with %s, which is decided after a look for the event',
    async (code) => {
      expect((await codesOf(lostThenRefused(code), 1)).codes).toEqual([code]);
    },
  );

  it('stays uncertain if other events got outcomes and then the credential ended', async () => {
    const answering: OnRequest = (request, send, stream, number) => {
      if (number === 0 && request.clientIndex === 1n) end(stream, lost());
      else if (number === 1) end(stream, keyRevoked());
      else send(appended(request));
    };
    const { codes } = await codesOf(answering, 2, { maxInFlight: 2, maxQueued: 10 });
    expect(codes).toEqual(['ok', 'connection_lost']);
  });

  it.each<[string, OnRequest]>([
    ['is no message', (_request, _send, stream) => void stream.write(Buffer.from([0xff]))],
    ['is of another event', (request, send) => send({ ...appended(request), clientIndex: 99n })],
    [
      'has an event that cannot be read',
      ({ clientIndex }, send) =>
        send({ clientIndex, outcome: { case: 'appended', value: { event: { seq: 2n ** 60n } } } }),
    ],
  ])(
    'fails with connection_lost if its outcome %s, and events that were not sent with invalid_answer',
    async (_what, answering) => {
      const { codes, sent } = await codesOf(answering, 2, oneByOne);
      expect({ codes, sent }).toEqual({ codes: ['connection_lost', 'invalid_answer'], sent: [[0]] });
    },
  );

  it('fails with connection_lost if its outcome is of no known kind, and the stream goes on', async () => {
    const answering: OnRequest = (request, send) =>
      send(request.clientIndex === 0n ? { clientIndex: 0n } : appended(request));
    const { codes, sent } = await codesOf(answering, 2, oneByOne);
    expect({ codes, sent }).toEqual({ codes: ['connection_lost', 'ok'], sent: [[0, 1]] });
  });
});
