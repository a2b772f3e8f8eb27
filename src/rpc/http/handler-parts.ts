import type { ServerResponse } from 'node:http';
import type { ClientAddress } from '../call/client-address.ts';
import type { IncomingCall } from '../call/incoming-call.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { AnswerLog } from '../pipeline/answer-log.ts';
import type { Pipeline } from '../pipeline/pipeline.ts';
import type { Cors } from './cors.ts';
import type { HttpHandler } from './response.ts';

/** What the transports on the HTTP port share. */
export interface HttpHandlerParts {
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly pipeline: Pipeline;
  readonly answers: AnswerLog;
  readonly cors: Cors;
  readonly clientAddress: ClientAddress;
  newId(): string;
}

/** Serves one request of node:http. */
export type CallHandler = HttpHandler;

/** Ends the signal of a call if its caller goes away before the answer is out. */
export function watchHangUp(parts: HttpHandlerParts, incoming: IncomingCall, response: ServerResponse): void {
  response.on('close', () => {
    if (!response.writableFinished) parts.pipeline.running.hangUp(incoming);
  });
}
