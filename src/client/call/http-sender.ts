import { LedgerTrustError } from '../error.ts';
import type { Headers, Wire } from '../transport.ts';

/** A page of events is 2 MiB, or one event of some 600 KiB. An answer far beyond that is not one of this API. */
export const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

interface HttpRequest extends Pick<Wire, 'path'> {
  readonly method: string;
  readonly headers: Headers;
  /** null: the request has no body. */
  readonly body: Uint8Array | null;
  readonly signal: AbortSignal;
  /** The answer is a live stream: its length is not bounded, and it keeps its connection. */
  readonly isLive?: boolean;
}

export interface HttpAnswer {
  readonly status: number;
  /** null: the answer has no header of this lower-case name, or more than one. */
  header(name: string): string | null;
  /** The body, once. Rejects if it is larger than ANSWER_MAX_BYTES. */
  text(): Promise<string>;
  /** The body, once, as it arrives. */
  chunks(): AsyncIterable<Uint8Array>;
}

/**
 * Sends HTTP requests to one origin. Implementations follow no redirects, because these would take the credential to
 * another address. They reject with any error but TypeError if no answer arrives.
 */
export interface HttpSender {
  send(request: HttpRequest): Promise<HttpAnswer>;
  close(): Promise<void>;
}

/** Throws LedgerTrustError `invalid_answer` for more than ANSWER_MAX_BYTES. */
export async function textOf(status: number, chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > ANSWER_MAX_BYTES) {
      const message = `The answer is larger than ${ANSWER_MAX_BYTES} bytes: it is not one of this API.`;
      throw new LedgerTrustError('invalid_answer', message, { status });
    }
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
