import { type ErrorCode, errorCodeOf, LedgerError } from '../../../domain/errors.ts';
import { statusDetails } from '../../call/error-info.ts';
import { requestIdOf } from '../../call/request-id.ts';
import { statusOf } from '../../call/status.ts';
import { tooLarge } from '../../http/body.ts';
import type { AnswerLog } from '../../pipeline/answer-log.ts';
import { type FrameReader, type FrameWriter, workerCommand } from '../frames.ts';

export interface RefusedCallParts {
  readonly answers: Pick<AnswerLog, 'unrouted'>;
  newId(): string;
}

/**
 * Answers a call that grpc-js refused: with its status, which the protocol requires, and with the code and message of
 * the service.
 */
export function answerRefused(parts: RefusedCallParts, number: number, frame: FrameReader, writer: FrameWriter): void {
  const status = frame.u8();
  const ms = frame.f64();
  const [route = '', code = '', message = '', sentId, bound = ''] = frame.texts();
  const error = refusalOf(code, message, bound);
  const requestId = noteRefused(parts, route, error.code, ms, sentId);
  const { message: text, bytes } = statusDetails(error, requestId, status);
  writer
    .frame(workerCommand.fail, number)
    .u8(status)
    .texts(['x-request-id', requestId])
    .bytes(Buffer.from(text))
    .bytes(bytes);
}

export function noteAnswered(parts: RefusedCallParts, frame: FrameReader): void {
  const ms = frame.f64();
  const [route = '', code = '', sentId] = frame.texts();
  noteRefused(parts, route, code === '' ? null : errorCodeOf(code), ms, sentId);
}

export function cutOf(frame: FrameReader): LedgerError {
  const [code = '', message = '', bound = ''] = frame.texts();
  return refusalOf(code, message, bound);
}

function noteRefused(
  { answers, newId }: RefusedCallParts,
  route: string,
  code: ErrorCode | null,
  ms: number,
  sentId: string | undefined,
): string {
  const requestId = requestIdOf(sentId, newId);
  const status = code === null ? 200 : statusOf(code).http;
  answers.unrouted({ transport: 'grpc', verb: 'POST', route, status, code, requestId, ms });
  return requestId;
}

function refusalOf(code: string, message: string, bound: string): LedgerError {
  if (code === 'payload_too_large' && message === '') return tooLarge();
  return new LedgerError(errorCodeOf(code), message, bound === '' ? {} : { bound });
}
