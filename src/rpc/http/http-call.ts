import type { IncomingMessage } from 'node:http';
import { LedgerError } from '../../domain/errors.ts';
import type { ClientAddress } from '../call/client-address.ts';
import type { RunningCall } from '../call/running-call.ts';
import type { HttpResponse } from './response.ts';
import { identifyAnswer } from './server.ts';

/** What REST and Connect calls on the HTTP port have in common. */
export abstract class HttpCall {
  protected readonly request: IncomingMessage;
  protected readonly response: HttpResponse;
  readonly #clientAddress: ClientAddress;
  #call: RunningCall | null = null;

  constructor(request: IncomingMessage, response: HttpResponse, clientAddress: ClientAddress) {
    this.request = request;
    this.response = response;
    this.#clientAddress = clientAddress;
  }

  get call(): RunningCall | null {
    return this.#call;
  }

  set call(call: RunningCall | null) {
    this.#call = call;
    if (call !== null) identifyAnswer(this.response, call.requestId);
  }

  header(name: string): string | undefined {
    // joinDuplicateHeaders keeps only set-cookie as a list, and no code asks for that header.
    return this.request.headers[name] as string | undefined;
  }

  idempotencyKey(): string | undefined {
    const key = this.header('idempotency-key');
    // A single key may contain a comma too.
    if (key?.includes(',') && this.request.headersDistinct['idempotency-key']?.length !== 1)
      throw new LedgerError('invalid_argument', 'Idempotency-Key was sent more than once.', {
        header: 'Idempotency-Key',
      });
    return key;
  }

  address(): string {
    return this.#clientAddress(this.request.socket.remoteAddress, this.header('x-forwarded-for'));
  }
}
