import type { ServerResponse } from 'node:http';
import Negotiator from 'negotiator';
import type { LedgerError } from '../../domain/errors.ts';
import type { RunSandboxResponse } from '../../gen/svc/v1/sandbox_pb.ts';
import type { StreamCall } from '../call/incoming-call.ts';
import type { RunningCall } from '../call/running-call.ts';
import { RestCall } from './rest-call.ts';

export const PLAIN = 'text/plain; charset=utf-8';
export const EVENTS = 'text/event-stream; charset=utf-8';

/** Returns a promise if the caller reads too slowly; it resolves once there is room, or the response has closed. */
export function writeOn(response: ServerResponse, chunk: string | Buffer): Promise<void> | undefined {
  if (response.write(chunk) || response.destroyed) return undefined;
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}

/** How long a caller that does not read keeps the connection after an error, ms. */
const lingerMs = 1_000;

export function endWithError(response: ServerResponse, text: string): void {
  response.end(text);
  setTimeout(() => response.destroy(), lingerMs).unref();
}

/**
 * A REST call of RunSandbox, whose answer is a stream of lines: plain text, or server-sent events (WHATWG HTML, section
 * 9.2) for a caller that prefers them (RFC 9110, section 12.5.1). An error after the first line is the last line.
 */
export class RestStreamCall extends RestCall implements StreamCall {
  #started = false;
  #isEvents = false;

  send(call: RunningCall, answer: object): Promise<void> | undefined {
    this.#start(call);
    return writeOn(this.response, this.#textOf((answer as RunSandboxResponse).line));
  }

  end(call: RunningCall): void {
    this.#start(call);
    this.response.end();
  }

  override fail(call: RunningCall, error: LedgerError): void {
    if (!this.#started) super.fail(call, error);
    if (!this.#started || !this.response.writable) return;
    endWithError(this.response, this.#textOf(`✗ ${error.message} (${error.code}, request ${call.requestId})`));
  }

  #start(call: RunningCall): void {
    if (this.#started) return;
    this.#started = true;
    const headers = this.headers(call);
    const type = new Negotiator(this.request).mediaType([PLAIN, EVENTS]) ?? PLAIN;
    this.#isEvents = type === EVENTS;
    // Proxies that buffer answers would hold the lines back.
    headers.push('content-type', type, 'cache-control', 'no-store', 'x-accel-buffering', 'no');
    this.response.writeHead(200, headers);
  }

  #textOf(line: string): string {
    return this.#isEvents ? `data: ${line.replaceAll('\n', '\ndata: ')}\n\n` : `${line}\n`;
  }
}
