import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LedgerError } from '../../domain/errors.ts';
import { limits } from '../../runtime/limits/limits.ts';
import { outOfMemoryBudget } from '../../service/limits/out-of-memory-budget.ts';
import type { RunningCall } from '../call/running-call.ts';
import type { HttpResponse } from './response.ts';

const empty = Buffer.alloc(0);

/** Whether a request has, or may have, a body. */
export function hasBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length'];
  return length === undefined ? request.headers['transfer-encoding'] !== undefined : length !== '0';
}

/**
 * Reads the raw body, of at most requestBodyMaxBytes. Throws `payload_too_large` as soon as the size is known, and
 * `overloaded` if the memory budget has no room; bytes count as they arrive. Throws `unavailable` if the caller goes
 * away or has not sent all of the body by the call's deadline.
 */
export function readBody(request: IncomingMessage, response: HttpResponse, call: AbortableCall): Promise<Buffer> {
  if (!hasBody(request)) return Promise.resolve(empty);
  let body: Buffer = empty;
  let length = 0;
  return receive(request, response, call, {
    take(chunk, isLast) {
      if (!response.holdRequest(chunk.length, isLast)) return false;
      body = appended(body, length, chunk);
      length += chunk.length;
      return true;
    },
    end: () => body.subarray(0, length),
  });
}

/** Reads a body like `readBody`, but keeps only its SHA-256, in hex: a signature covers an unused body too. */
export function dropBody(request: IncomingMessage, response: HttpResponse, call: AbortableCall): Promise<string> {
  const hash = createHash('sha256');
  return receive(request, response, call, {
    take(chunk) {
      hash.update(chunk);
      return true;
    },
    end: () => hash.digest('hex'),
  });
}

type AbortableCall = Pick<RunningCall, 'onAbort'> | null;

interface Taker<T> {
  /** Returns false if the memory budget has no room for the chunk. `isLast`: the body ends with this chunk. */
  take(chunk: Buffer, isLast: boolean): boolean;
  end(): T;
}

function receive<T>(
  request: IncomingMessage,
  response: HttpResponse,
  call: AbortableCall,
  taker: Taker<T>,
): Promise<T> {
  const max = limits.requestBodyMaxBytes;
  const declared = Number(request.headers['content-length'] ?? Number.NaN);
  if (declared > max) return Promise.reject(tooLarge());
  response.continueIfExpected();
  return new Promise((resolve, reject) => {
    let length = 0;
    const settle = (): void => {
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      if (call !== null) call.onAbort = null;
    };
    const fail = (error: LedgerError): void => {
      settle();
      response.dropRequest();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      const isTooLarge = length > max;
      if (!isTooLarge && taker.take(chunk, length === declared)) return;
      request.pause();
      fail(isTooLarge ? tooLarge() : outOfMemoryBudget());
    };
    const onEnd = (): void => {
      settle();
      response.requestEnded();
      resolve(taker.end());
    };
    const onGone = (): void => fail(new LedgerError('unavailable', 'The request ended before its body.'));
    const onLate = (): void =>
      fail(new LedgerError('unavailable', 'The request did not arrive in time: nothing was written.'));
    if (call !== null) call.onAbort = onLate;
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
}

/**
 * Appends `chunk` to the first `length` bytes of `body`, in a buffer that grows by doubling: a list of small chunks
 * would take some 100 bytes more for each.
 */
function appended(body: Buffer, length: number, chunk: Buffer): Buffer {
  if (length === 0) return chunk;
  const needed = length + chunk.length;
  let grown = body;
  if (needed > body.length) {
    grown = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(2 * body.length, limits.requestBodyMaxBytes)));
    body.copy(grown, 0, 0, length);
  }
  chunk.copy(grown, length);
  return grown;
}

export function tooLarge(): LedgerError {
  return new LedgerError('payload_too_large', `A request body may have ${limits.requestBodyMaxBytes} bytes.`, {
    limit_bytes: limits.requestBodyMaxBytes,
  });
}

/**
 * Ends an answer whose request's body was not read. Node drops a small remainder. Otherwise the connection is closed,
 * but not at once: a caller that is still sending would get a reset and lose the answer.
 */
export function endAfterUnreadBody(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  headers: string[],
  body: string,
): void {
  const declaredBytes = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY);
  if (request.complete || !hasBody(request) || declaredBytes <= limits.dropMaxBytes) {
    response.writeHead(status, headers).end(body);
    return;
  }
  headers.push('connection', 'close');
  response.writeHead(status, headers);
  response.write(body);
  let dropped = 0;
  const end = (): void => {
    clearTimeout(late);
    request.off('data', drop).off('end', end).off('close', end);
    response.end();
  };
  const drop = (chunk: Buffer): void => {
    dropped += chunk.length;
    if (dropped > limits.lingerMaxBytes) end();
  };
  const late = setTimeout(end, limits.lingerMaxMs).unref();
  request.on('data', drop).on('end', end).on('close', end).resume();
}
