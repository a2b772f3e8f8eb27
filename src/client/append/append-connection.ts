import { fromBinary } from '@bufbuild/protobuf';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import {
  type AppendError,
  AppendEventResponseSchema,
  type AppendEventsResponse,
  AppendEventsResponseSchema,
} from '../../gen/svc/v1/masters_pb.ts';
import { answerFromMessage } from '../call/answer-decoding.ts';
import { detailsOf, grpcStreamError, isServiceError } from '../call/grpc-error.ts';
import { retryAfterOf } from '../call/rest-error.ts';
import { isUncertain, reportedError } from '../call/retry.ts';
import { answeredError, cutNames, invalidAnswer, LedgerTrustError } from '../error.ts';
import type { Appended } from './append-api.ts';

/** Milliseconds. The service answers every event within 10 s, so a connection without an outcome for longer is dead. */
const STALL_MS = 20_000;

/** An event that was accepted and has no outcome yet. */
export interface OpenEvent {
  /** The serialized request. Rejects, as the event does then, if it cannot be signed or serialized. */
  readonly request: Promise<Buffer>;
  /** The last error that left open whether the event was written. null if there is none. */
  uncertain: LedgerTrustError | null;
  resolve(appended: Appended): void;
  reject(error: unknown): void;
}

interface AppendConnectionParts {
  readonly stream: ClientDuplexStream<Buffer, Buffer>;
  /** The events without an outcome, in ascending order of their index. */
  readonly open: ReadonlyMap<number, OpenEvent>;
  readonly maxInFlight: number;
  nextIndex(): number;
  /** Whether no more events will come. */
  ended(): boolean;
  readonly signal: AbortSignal | undefined;
  /** Resolves at the next change: an event was accepted or got its outcome, or the stream was closed or aborted. */
  change(): Promise<void>;
  wake(): void;
}

/**
 * Runs one stream until it ends. Sends the open events from the lowest index on, and settles each when its outcome
 * arrives. After the first error that allows a retry it sends no more, and waits for the outcomes of those that were
 * sent: the caller resumes from the lowest open index on a new stream.
 *
 * Never rejects: `error` is null after an orderly end, and `settled` is the number of events that got an outcome.
 */
export async function runAppendConnection(
  parts: AppendConnectionParts,
): Promise<{ readonly error: unknown; readonly settled: number }> {
  const { stream, open } = parts;
  const inFlight = new Set<number>();
  let settled = 0;
  let resumable: LedgerTrustError | null = null;
  let failure: unknown = null;
  /** Why the events in flight may be written, where `failure` does not say so. */
  let doubt: LedgerTrustError | null = null;
  let over = false;
  /** Set once nothing more is sent, and the service should end the stream. */
  let isEnding = false;

  const stall = (): void => {
    const silent = new LedgerTrustError('connection_lost', 'The append stream brought no outcome for too long.');
    failure ??= (inFlight.size === 0 ? resumable : null) ?? silent;
    stream.cancel();
  };
  let watch: NodeJS.Timeout | undefined;
  const rearm = (): void => {
    clearTimeout(watch);
    watch = inFlight.size === 0 && !isEnding ? undefined : setTimeout(stall, STALL_MS);
  };

  const take = (bytes: Buffer): void => {
    const { clientIndex, outcome } = messageOf(bytes);
    const index = Number(clientIndex);
    const event = open.get(index);
    if (!inFlight.has(index) || event === undefined)
      throw invalidAnswer(`Outcome ${index}`, 'that of an event that was sent');
    if (outcome.case === 'error' && outcome.value.resumeFrom !== undefined) {
      const error = eventError(outcome.value);
      if (isUncertain(error)) event.uncertain = error;
      if (resumable === null || (isUncertain(error) && !isUncertain(resumable))) resumable = error;
    } else {
      if (outcome.case === 'appended' && outcome.value.event !== undefined) {
        const answer = answerFromMessage(AppendEventResponseSchema, outcome.value.event);
        event.resolve({ ...answer, replayed: outcome.value.replayed } as unknown as Appended);
      } else {
        const error =
          outcome.case === 'error'
            ? eventError(outcome.value)
            : unreadable(invalidAnswer(`Outcome ${index}`, 'an outcome'));
        event.reject(reportedError(error, event.uncertain));
      }
      settled += 1;
    }
    // Only now: an event whose outcome cannot be read is still without one.
    inFlight.delete(index);
    rearm();
    parts.wake();
  };

  const finished = new Promise<void>((resolve) => {
    const end = (): void => {
      over = true;
      parts.wake();
      resolve();
    };
    stream.on('data', (bytes: Buffer) => {
      try {
        take(bytes);
      } catch (error) {
        failure ??= error;
        doubt ??= unreadable(error);
        stream.cancel();
      }
    });
    stream.on('error', (error) => {
      failure ??= isServiceError(error) ? grpcStreamError(error) : error;
      end();
    });
    stream.on('end', end);
  });

  const cancel = (): void => stream.cancel();
  parts.signal?.addEventListener('abort', cancel, { once: true });
  const stopped = (): boolean => over || resumable !== null || parts.signal?.aborted === true;
  // Events are inserted in ascending order, so the first one is the lowest.
  let next = open.keys().next().value ?? parts.nextIndex();
  while (!stopped()) {
    if (next >= parts.nextIndex()) {
      if (parts.ended()) break;
      await parts.change();
      continue;
    }
    const event = open.get(next);
    const request = await event?.request.catch(() => null);
    if (request === undefined || request === null || !open.has(next)) {
      next += 1;
      continue;
    }
    while (inFlight.size >= parts.maxInFlight && !stopped()) await parts.change();
    if (stopped()) break;
    inFlight.add(next);
    next += 1;
    if (inFlight.size === 1) rearm();
    if (!stream.write(request)) await drained(stream, finished);
  }
  if (parts.signal?.aborted) stream.cancel();
  else if (!over) stream.end();
  isEnding = true;
  rearm();
  await finished;
  clearTimeout(watch);
  parts.signal?.removeEventListener('abort', cancel);
  const lost = new LedgerTrustError('connection_lost', 'The append stream ended before all outcomes were there.');
  const ended = failure ?? lost;
  // If the service itself ended the stream, it has answered every event that it accepted: the open ones were not
  // written.
  const uncertain = isUncertain(ended) ? ended : doubt;
  if (uncertain !== null) {
    for (const index of inFlight) {
      const event = open.get(index);
      if (event !== undefined) event.uncertain = uncertain;
    }
  }
  // An error that leaves open whether an event was written comes first: a refusal occurs again on the next connection.
  for (const error of [failure, resumable]) if (isUncertain(error)) return { error, settled };
  const known = failure ?? (inFlight.size > 0 ? null : resumable);
  return { error: known ?? (open.size > 0 ? lost : null), settled };
}

function messageOf(bytes: Buffer): AppendEventsResponse {
  try {
    return fromBinary(AppendEventsResponseSchema, bytes);
  } catch (cause) {
    throw invalidAnswer('An outcome', AppendEventsResponseSchema.typeName, cause);
  }
}

/** The error of an event that was sent, so that it may be written, and whose outcome says nothing. */
function unreadable(cause: unknown): LedgerTrustError {
  return new LedgerTrustError('connection_lost', 'The append stream brought an outcome that cannot be read.', {
    cause,
  });
}

function eventError(error: AppendError): LedgerTrustError {
  const details = detailsOf(error.details);
  const retryAfterMs = retryAfterOf(String(details.retry_after_s));
  return answeredError(error.code, error.message, { details, cut: cutNames(error.cut), retryAfterMs });
}

function drained(stream: ClientDuplexStream<Buffer, Buffer>, finished: Promise<void>): Promise<void> {
  return Promise.race([new Promise<void>((resolve) => stream.once('drain', () => resolve())), finished]);
}
