import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { type Dispatcher, Pool } from 'undici';
import type { Endpoint } from '../endpoint.ts';
import { clientClosed, decoding, LedgerTrustError } from '../error.ts';
import type { Headers, Received, Transport, Wire } from '../transport.ts';
import { answerFromJson, parsed } from './answer-decoding.ts';
import type { ClientOptions } from './client-options.ts';
import { jsonBody, pathAndQuery } from './request-encoding.ts';
import { connectionError, restError } from './rest-error.ts';

/** A page of events is 2 MiB, or one event of some 600 KiB. An answer far beyond that is not one of this API. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;
const noBody = new Uint8Array(0);

/**
 * Redirects are not followed, because they would take the credential to another address. Throws TypeError for a base
 * URL that is not an http(s) address and a path alone.
 */
export function createRestTransport(baseUrl: string, options: ClientOptions): Transport {
  const url = new URL(baseUrl);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError('baseUrl must be an http or https URL');
  if (url.username !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError('baseUrl is an address and a path alone');
  const prefix = url.pathname.replace(/\/$/, '');
  const dispatcher =
    options.dispatcher ??
    new Pool(url.origin, {
      connections: options.connections ?? 64,
      maxResponseSize: ANSWER_MAX_BYTES,
      ...(options.ca === undefined ? {} : { connect: { ca: options.ca } }),
    });

  let closing: Promise<void> | null = null;
  /** Sends a request. Throws the error of an answer with status 300 or above. */
  const request = async (wire: Wire, headers: Headers, signal: AbortSignal): Promise<Dispatcher.ResponseData> => {
    if (closing !== null) throw clientClosed();
    const body = wire.body.length === 0 ? null : wire.body;
    const answer = await dispatcher.request({
      origin: url.origin,
      method: wire.httpMethod as Dispatcher.HttpMethod,
      path: wire.path,
      headers: body === null ? headers : { ...headers, 'content-type': 'application/json' },
      body,
      signal,
    });
    if (answer.statusCode < 300) return answer;
    const text = await answer.body.text();
    throw restError(answer.statusCode, text, headerOf(answer, 'x-request-id'), headerOf(answer, 'retry-after'));
  };

  return {
    encode: (endpoint, given) => encode(endpoint, given, prefix),

    async send(wire, headers, signal) {
      try {
        const answer = await request(wire, headers, signal);
        return received(wire.endpoint, answer, await answer.body.text());
      } catch (thrown) {
        throw outward(thrown, signal);
      }
    },

    async *stream(wire, headers, signal) {
      try {
        const answer = await request(wire, { ...headers, accept: 'text/plain' }, signal);
        for await (const line of linesOf(answer.body)) yield { line };
      } catch (thrown) {
        throw outward(thrown, signal);
      }
    },

    async close() {
      closing ??= options.dispatcher === undefined ? dispatcher.close() : Promise.resolve();
      await closing;
    },
  };
}

function encode(endpoint: Endpoint, given: ReadonlyMap<DescField, unknown>, prefix: string): Wire {
  const { rest } = endpoint;
  if (rest === null) throw new TypeError(`${endpoint.name} is gRPC alone`);
  const path = prefix + pathAndQuery(rest, given);
  const json = rest.hasBody ? jsonBody(rest.otherFields, given) : null;
  return { endpoint, httpMethod: rest.httpMethod, path, body: json === null ? noBody : Buffer.from(json) };
}

function received(endpoint: Endpoint, answer: Dispatcher.ResponseData, text: string): Received {
  const desc: DescMessage = endpoint.method.output;
  const requestId = headerOf(answer, 'x-request-id');
  const whole = endpoint.rest?.responseField ?? null;
  const replayed = headerOf(answer, 'idempotent-replayed') === 'true';
  return decoding({ status: answer.statusCode, requestId }, () => {
    const json = text === '' ? {} : parsed(text, `The answer to ${endpoint.name}`);
    return { answer: answerFromJson(desc, whole === null ? json : { [whole.name]: json }), requestId, replayed };
  });
}

function headerOf(answer: Dispatcher.ResponseData, name: string): string | null {
  const value = answer.headers[name];
  return typeof value === 'string' ? value : null;
}

async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}

function outward(thrown: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  return thrown instanceof LedgerTrustError || thrown instanceof TypeError ? thrown : connectionError(thrown);
}
