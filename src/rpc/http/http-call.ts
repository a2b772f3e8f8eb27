import type { IncomingMessage } from 'node:http';
import { LedgerError } from '../../domain/errors.ts';
import type { RunningCall } from '../call/running-call.ts';
import type { HttpHandlerParts } from './handler-parts.ts';
import type { HttpResponse } from './response.ts';

export abstract class HttpCall {
  protected readonly request: IncomingMessage;
  protected readonly response: HttpResponse;
  readonly #parts: HttpHandlerParts;
  #call: RunningCall | null = null;

  constructor(parts: HttpHandlerParts, request: IncomingMessage, response: HttpResponse) {
    this.#parts = parts;
    this.request = request;
    this.response = response;
    response.call = this;
  }

  responseClosed(): void {
    if (!this.response.writableFinished) this.#parts.pipeline.running.hangUp(this);
  }

  get call(): RunningCall | null {
    return this.#call;
  }

  set call(call: RunningCall | null) {
    this.#call = call;
    if (call !== null) this.response.requestId = call.requestId;
  }

  header(name: string): string | undefined {
    // joinDuplicateHeaders keeps only set-cookie as a list, and no code asks for that header.
    return this.request.headers[name] as string | undefined;
  }

  idempotencyKey(): string | undefined {
    const key = this.header('idempotency-key');
    // A single key may contain a comma too.
    if (key?.includes(',') && this.request.headersDistinct['idempotency-key']?.length !== 1) {
      const details = { header: 'Idempotency-Key' };
      throw new LedgerError('invalid_argument', 'Idempotency-Key was sent more than once.', details);
    }
    return key;
  }

  address(): string {
    return this.#parts.clientAddress(this.request.socket.remoteAddress, this.header('x-forwarded-for'));
  }
}
