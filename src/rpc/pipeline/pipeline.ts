import { LedgerError } from '../../domain/errors.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Credentials, EntityRequest } from '../../service/developers/credentials.ts';
import type { SecretBox } from '../../service/records/secret-box.ts';
import { Walk, type WalkParts } from '../../service/walking/walk.ts';
import { checkIdempotencyKey, commandId } from '../../service/writing/command-key.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { freshEntropy, pooledRandom, type Random } from '../call/entropy.ts';
import type { BidiCall, Decoded, IncomingCall, StreamCall, UnaryCall } from '../call/incoming-call.ts';
import { requestIdOf } from '../call/request-id.ts';
import { RunningCall } from '../call/running-call.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { BidiStreamHandler, ServerStreamHandler, UnaryHandler } from '../endpoints/handlers.ts';
import type { AnswerLog } from './answer-log.ts';
import { type CallRates, walkerOf } from './call-rates.ts';
import { type CallRegister, createCallRegister } from './call-register.ts';
import { identify, signatureOf } from './caller.ts';
import { checkEntityRequest, useEntityRequest } from './entity-request.ts';
import { fingerprintOf } from './fingerprint.ts';
import { runOnce } from './idempotency.ts';
import { watchCredential } from './stream-credential.ts';

/** What the pipeline uses. */
interface PipelineParts {
  readonly credentials: Credentials;
  readonly records: RecordStore;
  readonly secrets: SecretBox;
  readonly rates: CallRates;
  /** What the walks of a node share. */
  readonly walks: WalkParts;
  readonly answers: AnswerLog;
  readonly random: Random;
  /** Unix time, ms. */
  now(): number;
  /** Milliseconds of a monotonic clock. */
  monotonicMs(): number;
  /** Whether this node's clock is right, so that it may check and date calls. If absent, it always is. */
  readonly isClockRight?: () => boolean;
}

/**
 * The steps of every call, the same for all transports: request id, credential, rate limit, decoding by the transport
 * (media type, size, JSON, fields), idempotency, handler, answer or error, log and metrics. The methods never reject:
 * every error becomes the call's answer.
 */
export interface Pipeline {
  unary(endpoint: Endpoint, exchange: UnaryCall): Promise<void>;
  serverStream(endpoint: Endpoint, exchange: StreamCall): Promise<void>;
  bidi(endpoint: Endpoint, exchange: BidiCall): Promise<void>;
  /** The calls that run. */
  readonly running: CallRegister;
}

export function createPipeline(given: PipelineParts): Pipeline {
  const parts: PipelineParts = {
    ...given,
    random: pooledRandom(given.random),
    now: given.now,
    monotonicMs: given.monotonicMs,
  };
  /** Answers in place of a handler that still runs. */
  const answerFor = (call: RunningCall, exchange: IncomingCall, error: LedgerError): void => {
    exchange.fail(call, error);
    void parts.answers.failed(call, exchange, error);
  };
  const running = createCallRegister(parts.now, answerFor);

  const begin = (endpoint: Endpoint, exchange: IncomingCall, timeoutMs: number): RunningCall => {
    const now = parts.now();
    const entropy = freshEntropy(parts.random, now);
    const requestId = requestIdOf(exchange.header('x-request-id'), entropy.newId);
    const deadline = now + Math.min(exchange.timeoutMs, timeoutMs);
    const openWalk = (walking: RunningCall): Walk =>
      new Walk(parts.walks, walkerOf(walking.caller, exchange.address()), walking.signal);
    const call = new RunningCall(
      endpoint,
      exchange.transport,
      requestId,
      now,
      deadline,
      parts.monotonicMs(),
      entropy,
      openWalk,
    );
    running.add(call, exchange);
    return call;
  };

  const end = (call: RunningCall, exchange: IncomingCall): void => {
    const walk = call.openedWalk;
    if (walk !== null) {
      walk.end();
      parts.rates.charge(call, () => exchange.address(), walk.cost, parts.monotonicMs());
    }
    running.remove(exchange);
  };

  const fail = async (call: RunningCall, exchange: IncomingCall, thrown: unknown): Promise<void> => {
    const error = outward(thrown);
    if (call.answered) return parts.answers.late(call, error);
    const noted = parts.answers.failed(call, exchange, error);
    if (noted !== undefined) await noted;
    if (call.answered) return;
    call.answered = true;
    exchange.fail(call, error);
  };

  return {
    running,

    async unary(endpoint, exchange) {
      const call = begin(endpoint, exchange, limits.callTimeoutMs);
      try {
        const signed = await admit(parts, call, exchange);
        const decoded = take(call, exchange);
        const handler = endpoint.handler as UnaryHandler;
        const key = call.caller !== null && endpoint.changesState ? exchange.idempotencyKey() : undefined;
        const answer =
          key === undefined && signed === null
            ? await handler(decoded.message, call)
            : await runOnceOnly(parts, call, exchange, decoded, key, signed, handler);
        if (call.openedWalk !== null) await call.openedWalk.beforeAnswer();
        exchange.encode?.(answer);
        const noted = parts.answers.succeeded(call, exchange);
        if (noted !== undefined) await noted;
        if (call.answered) return;
        exchange.succeed(call, answer);
        call.answered = true;
      } catch (thrown) {
        await fail(call, exchange, thrown);
      } finally {
        end(call, exchange);
      }
    },

    async serverStream(endpoint, exchange) {
      const call = begin(endpoint, exchange, limits.serverStreamTimeoutMs);
      try {
        await admit(parts, call, exchange);
        const { message } = take(call, exchange);
        await sendAll(call, exchange, (endpoint.handler as ServerStreamHandler)(message, call));
        await finish(parts, call, exchange);
      } catch (thrown) {
        await fail(call, exchange, thrown);
      } finally {
        end(call, exchange);
      }
    },

    async bidi(endpoint, exchange) {
      const call = begin(endpoint, exchange, Number.POSITIVE_INFINITY);
      try {
        await admit(parts, call, exchange);
        const watch = watchCredential(parts.credentials, call, exchange, answerFor);
        try {
          await sendAll(call, exchange, (endpoint.handler as BidiStreamHandler)(exchange.requests, call));
        } finally {
          watch.stop();
        }
        if (call.ending !== null) throw call.ending;
        await finish(parts, call, exchange);
      } catch (thrown) {
        await fail(call, exchange, thrown);
      } finally {
        exchange.requests.stop();
        end(call, exchange);
      }
    },
  };
}

/**
 * Checks the credential and the rate limit, and receives the request. If an entity's signature over the whole request
 * is part of its credential, checks it too and returns what was signed.
 */
async function admit(parts: PipelineParts, call: RunningCall, exchange: IncomingCall): Promise<EntityRequest | null> {
  const { rule } = call.endpoint;
  const identified = identify(parts.credentials, rule, exchange);
  const caller = identified instanceof Promise ? await identified : identified;
  call.caller = caller;
  refuseByWrongClock(parts, call);
  parts.rates.admit(call, () => exchange.address(), parts.monotonicMs());
  const received = exchange.receive();
  if (received !== undefined) await received;
  if (caller === null) return null;
  const signature = signatureOf(exchange);
  if (caller.via === 'entity_header' && !rule.signed) {
    const signed = () => exchange.signedRequest();
    const timestamp = exchange.header('x-timestamp');
    const request = await checkEntityRequest(parts.credentials, caller, signature, timestamp, signed, parts.now());
    if (request !== null) call.markVerified();
    return request;
  }
  call.signature = signature;
  call.deliveryChain = exchange.header('x-delivery-chain') ?? null;
  return null;
}

/**
 * While this node's clock is wrong, it checks and dates nothing: credentials, grants, expiry of keys and signed
 * requests all depend on the time. Commands to ledgers are accepted and go to the node that runs the ledger. Throws
 * `unavailable`.
 */
function refuseByWrongClock({ isClockRight }: PipelineParts, { caller, endpoint }: RunningCall): void {
  if (isClockRight?.() !== false) return;
  const { rule } = endpoint;
  if (caller === null && !endpoint.changesState) return;
  const isCommand = rule.writesLedger && (rule.signed || caller?.via !== 'entity_header');
  if (isCommand) return;
  throw new LedgerError(
    'unavailable',
    'The clock of this node is off, so it cannot check what callers may do now; nothing was written, retry to reach another node.',
  );
}

/** Decodes the request and keeps it for the handler and the access records. */
function take(call: RunningCall, exchange: IncomingCall): Decoded {
  const decoded = exchange.decode();
  call.parsed = decoded.json;
  call.request = decoded.message;
  return decoded;
}

/**
 * Runs a call that must change state only once: because it has an idempotency key, or because its signature counts
 * once. Throws `invalid_argument`; rejects with all other errors.
 */
function runOnceOnly(
  parts: PipelineParts,
  call: RunningCall,
  exchange: IncomingCall,
  decoded: Decoded,
  key: string | undefined,
  signed: EntityRequest | null,
  handler: UnaryHandler,
): Promise<object> {
  const { caller, endpoint } = call;
  if (caller === null || !endpoint.changesState) return handler(decoded.message, call);
  const id = key === undefined ? null : commandId(caller.actorId, checkIdempotencyKey(key));
  const run = (): Promise<object> => {
    if (id === null) return handler(decoded.message, call);
    const fingerprint = fingerprintOf(endpoint, decoded, exchange);
    if (!endpoint.rule.writesLedger) return runOnce(parts, call, id, fingerprint, () => handler(decoded.message, call));
    call.command = { id, fingerprint, permanent: false };
    return handler(decoded.message, call);
  };
  return signed === null ? run() : useEntityRequest(parts.records, caller.actorId, signed, id, parts.now()).then(run);
}

async function sendAll(call: RunningCall, exchange: StreamCall, answers: AsyncIterable<object>): Promise<void> {
  for await (const answer of answers) {
    if (call.aborted) return;
    const full = exchange.send(call, answer);
    if (full !== undefined) await full;
  }
}

async function finish(parts: PipelineParts, call: RunningCall, exchange: StreamCall): Promise<void> {
  if (call.answered) return;
  if (call.aborted) throw new LedgerError('unavailable', 'The stream ended before all of it was sent.');
  const noted = parts.answers.succeeded(call, exchange);
  if (noted !== undefined) await noted;
  if (call.answered) return;
  call.answered = true;
  exchange.end(call);
}

/** Returns a LedgerError as it is, and anything else as `internal` with its cause, which only the log shows. */
function outward(thrown: unknown): LedgerError {
  if (thrown instanceof LedgerError) return thrown;
  return new LedgerError(
    'internal',
    'Something went wrong inside the service; the request id helps to find out what.',
    {},
    thrown,
  );
}
