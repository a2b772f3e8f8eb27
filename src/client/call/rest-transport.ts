import type { DescField, DescMessage } from '@bufbuild/protobuf';
import type { Endpoint } from '../endpoint.ts';
import { clientClosed, decoding, invalidAnswer, LedgerTrustError } from '../error.ts';
import type { Headers, LiveMessage, Received, Transport, Wire } from '../transport.ts';
import { answerFromJson, liveField, parsed } from './answer-decoding.ts';
import type { HttpAnswer, HttpSender } from './http-sender.ts';
import { jsonBody, pathAndQuery } from './request-encoding.ts';
import { connectionError, restError } from './rest-error.ts';
import { serverSentEvents } from './server-sent-events.ts';

const NO_CONTENT = 204;
const noBody = new Uint8Array(0);

export function createRestTransport(prefix: string, sender: HttpSender): Transport {
  let closing: Promise<void> | null = null;
  /** Sends a request. Throws the error of an answer with status 300 or above. */
  const request = async (wire: Wire, headers: Headers, signal: AbortSignal, isLive = false): Promise<HttpAnswer> => {
    if (closing !== null) throw clientClosed();
    const body = wire.body.length === 0 ? null : wire.body;
    const answer = await sender.send({
      method: wire.httpMethod,
      path: wire.path,
      headers: body === null ? headers : { ...headers, 'content-type': 'application/json' },
      body,
      signal,
      isLive,
    });
    if (answer.status < 300) return answer;
    const text = await answer.text();
    throw restError(answer.status, text, answer.header('x-request-id'), answer.header('retry-after'));
  };

  return {
    encode: (endpoint, given) => encode(endpoint, given, prefix),

    async send(wire, headers, signal) {
      try {
        const answer = await request(wire, headers, signal);
        return received(wire.endpoint, answer, await answer.text());
      } catch (thrown) {
        throw outward(thrown, signal);
      }
    },

    async *stream(wire, headers, signal) {
      try {
        const answer = await request(wire, { ...headers, accept: 'text/plain' }, signal);
        for await (const line of linesOf(answer.chunks())) yield { line };
      } catch (thrown) {
        throw outward(thrown, signal);
      }
    },

    async *live(wire, headers, signal) {
      try {
        const answer = await request(wire, { ...headers, accept: 'text/event-stream' }, signal, true);
        if (answer.status === NO_CONTENT) await answer.text();
        else yield* liveMessages(wire, answer);
      } catch (thrown) {
        throw outward(thrown, signal);
      }
    },

    async close() {
      closing ??= sender.close();
      await closing;
    },
  };
}

function encode(endpoint: Endpoint, given: ReadonlyMap<DescField, unknown>, prefix: string): Wire {
  const { rest } = endpoint;
  if (rest === null) throw new TypeError(`${endpoint.name} is gRPC alone`);
  const path = prefix + pathAndQuery(rest, given);
  const json = rest.hasBody ? jsonBody(rest.otherFields, given) : null;
  return { endpoint, httpMethod: rest.httpMethod, path, body: json === null ? noBody : new TextEncoder().encode(json) };
}

function received(endpoint: Endpoint, answer: HttpAnswer, text: string): Received {
  const desc: DescMessage = endpoint.method.output;
  const requestId = answer.header('x-request-id');
  const whole = endpoint.rest?.responseField ?? null;
  const replayed = answer.header('idempotent-replayed') === 'true';
  return decoding({ status: answer.status, requestId }, () => {
    const json = text === '' ? {} : parsed(text, `The answer to ${endpoint.name}`);
    return { answer: answerFromJson(desc, whole === null ? json : { [whole.name]: json }), requestId, replayed };
  });
}

/** The messages of server-sent events. Throws the error that the service sends as the last of them. */
async function* liveMessages(wire: Wire, answer: HttpAnswer): AsyncIterable<LiveMessage> {
  const { output } = wire.endpoint.method;
  const requestId = answer.header('x-request-id');
  if (!answer.header('content-type')?.startsWith('text/event-stream'))
    throw invalidAnswer(`The answer to ${wire.endpoint.name}`, 'a stream of server-sent events');
  let isEmpty = true;
  for await (const { event, data } of serverSentEvents(answer.chunks())) {
    if (event === 'error') throw restError(answer.status, data, requestId, null);
    const field = liveField(output, ({ name }) => name === event);
    if (field === null) continue;
    isEmpty = false;
    yield decoding({ status: answer.status, requestId }, () => ({
      kind: field.kind,
      value: answerFromJson(field.message, parsed(data, `The message ${event}`)),
    }));
  }
  // The service ends a stream without any message by the status 204.
  if (isEmpty) throw connectionError(new Error('The stream ended before its first message'));
}

/** Of the report of a sandbox run, whose lines are sentences. */
const LINE_MAX_CHARS = 1024 * 1024;

async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LINE_MAX_CHARS) throw invalidAnswer('A line', `of at most ${LINE_MAX_CHARS} characters`);
    yield* lines;
  }
  if (rest !== '') yield rest;
}

function outward(thrown: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  return thrown instanceof LedgerTrustError || thrown instanceof TypeError ? thrown : connectionError(thrown);
}
