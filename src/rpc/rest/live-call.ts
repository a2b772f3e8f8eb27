import type { DescMethod } from '@bufbuild/protobuf';
import { invalidHeader, type LedgerError } from '../../domain/errors.ts';
import { encodedOnce } from '../../service/calls/shared-answer.ts';
import { jsonRule } from '../../service/encoding/json-field.ts';
import { messageWriter } from '../../service/encoding/message-json.ts';
import type { Decoded, StreamCall } from '../call/incoming-call.ts';
import type { RunningCall } from '../call/running-call.ts';
import { errorEnvelope } from '../http/error-envelope.ts';
import { RestCall } from './rest-call.ts';
import { EVENTS, endWith, writeOn } from './stream-call.ts';

/** How long EventSource waits before it reconnects, ms, if no error says otherwise. */
const retryMs = 2_000;

const PLACE = /^(0|-1|[1-9][0-9]{0,15})$/;

/** An answer of a live stream, in the shape of its descriptor. */
interface LiveAnswer {
  readonly message?: { readonly case?: string; readonly value?: object };
  readonly resumeAfter?: bigint;
}

/**
 * A REST call whose answer is a live stream of server-sent events (WHATWG HTML, section 9.2). The answer's oneof names
 * the event, `resume_after` is its id, and Last-Event-ID of a request takes the place of the field that resumes. A
 * stream without any message is answered with 204, which tells EventSource not to come back.
 */
export class RestLiveCall extends RestCall implements StreamCall {
  #started = false;

  override decode(): Decoded {
    const decoded = super.decode();
    const id = this.header('last-event-id') ?? '';
    const field = this.entry.endpoint.method.input.fields.find((candidate) => jsonRule(candidate).resumes);
    if (id === '' || field === undefined) return decoded;
    if (!PLACE.test(id)) throw invalidHeader('Last-Event-ID', 'the id of an event of this stream');
    return { ...decoded, message: Object.assign(decoded.message, { [field.localName]: BigInt(id) }) };
  }

  send(call: RunningCall, answer: object): Promise<void> | undefined {
    this.#start(call);
    const { method } = this.entry.endpoint;
    const encode = () => Buffer.from(frameOf(method, answer));
    return writeOn(this.response, encodedOnce(answer, 'server-sent event', encode));
  }

  end(call: RunningCall): void {
    if (this.#started) this.response.end();
    else this.response.writeHead(204, [...this.headers(call), 'cache-control', 'no-store']).end();
  }

  override fail(call: RunningCall, error: LedgerError): void {
    if (!this.#started) {
      super.fail(call, error);
      return;
    }
    const retry = error.details.retry_after_ms;
    const hint = typeof retry === 'number' ? `retry: ${retry}\n` : '';
    endWith(this.response, `${hint}event: error\ndata: ${errorEnvelope(error, call.requestId)}\n\n`);
  }

  #start(call: RunningCall): void {
    if (this.#started) return;
    this.#started = true;
    const headers = this.headers(call);
    // Proxies that buffer or compress answers would hold the events back.
    headers.push('content-type', EVENTS, 'cache-control', 'no-store, no-transform', 'x-accel-buffering', 'no');
    this.response.writeHead(200, headers);
    this.response.write(`retry: ${retryMs}\n: the stream has begun\n\n`);
    this.response.dropHead();
  }
}

function frameOf({ output }: DescMethod, answer: object): string {
  const { message, resumeAfter } = answer as LiveAnswer;
  const field = output.fields.find(({ localName }) => localName === message?.case);
  if (field?.message === undefined || message?.value === undefined)
    throw new TypeError('an answer without its message');
  const id = resumeAfter === undefined ? '' : `id: ${resumeAfter}\n`;
  // The comment keeps proxies from closing a quiet connection, and readers may pass over it.
  const comment = field.name === 'heartbeat' ? ': keep-alive\n' : '';
  return `${comment}${id}event: ${field.name}\ndata: ${messageWriter(field.message)(message.value)}\n\n`;
}
