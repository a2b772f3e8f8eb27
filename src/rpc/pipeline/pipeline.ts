import type { Message } from '@bufbuild/protobuf';
import { asLedgerError, LedgerError } from '../../domain/errors.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { EntityRequest } from '../../service/calls/call.ts';
import { demandEntitySignature } from '../../service/calls/caller.ts';
import type { PushedAnswers } from '../../service/calls/pushed-answers.ts';
import type { Credentials } from '../../service/developers/credentials.ts';
import { fingerprintOf } from '../../service/idempotency/fingerprint.ts';
import { type RunOnceParts, runOnce } from '../../service/idempotency/run-once.ts';
import type { BidiCall, IncomingCall, StreamCall, UnaryCall } from '../call/incoming-call.ts';
import type { RunningCall } from '../call/running-call.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { BidiStreamHandler, LiveStreamHandler, ServerStreamHandler, UnaryHandler } from '../endpoints/handlers.ts';
import { createCallRegister } from './call-register.ts';
import { identify, signatureOf } from './caller.ts';
import { signedTime } from './entity-request.ts';
import { PipelineCall, type PipelineCallParts } from './pipeline-call.ts';
import { StreamCredentials } from './stream-credentials.ts';

interface PipelineParts extends RunOnceParts, PipelineCallParts {
  readonly credentials: Credentials;
  /** Whether this node's clock is right, so that it may check and date calls. If absent, it always is. */
  readonly isClockRight?: () => boolean;
}

/**
 * The steps of every call, the same for all transports: request id, credential, rate limit, decoding by the transport
 * (media type, size, JSON, fields), idempotency, handler, answer or error, log and metrics. The methods never reject:
 * every error becomes the call's answer.
 */
export type Pipeline = ReturnType<typeof createPipeline>;

export function createPipeline(parts: PipelineParts) {
  /** Answers in place of a handler that still runs. */
  const answerFor = (call: RunningCall, incoming: IncomingCall, error: LedgerError): void => {
    try {
      incoming.fail(call, error);
      void parts.answers.failed(call, incoming, error);
    } catch (defect) {
      parts.answers.late(call, asLedgerError(defect));
    }
  };
  const running = createCallRegister(parts.now, answerFor);
  const streamCredentials = new StreamCredentials(parts.credentials, answerFor);

  const fail = async (call: RunningCall, incoming: IncomingCall, thrown: unknown): Promise<void> => {
    const error = asLedgerError(thrown);
    if (call.answered) return parts.answers.late(call, error);
    await parts.answers.failed(call, incoming, error);
    if (call.answered) return;
    call.answered = true;
    const { retry_after_s: retryAfterS } = error.details;
    if (typeof retryAfterS === 'number') call.headers.push(['retry-after', String(retryAfterS)]);
    incoming.fail(call, error);
  };

  /** The last attempt to answer: a rejection that nobody catches would end the node. */
  const failAgain = (call: RunningCall, incoming: IncomingCall, thrown: unknown): void => {
    const error = asLedgerError(thrown);
    parts.answers.late(call, error);
    call.answered = true;
    try {
      incoming.fail(call, error);
    } catch (defect) {
      parts.answers.late(call, asLedgerError(defect));
    }
  };

  /** Runs the steps of one call. What they throw becomes its answer. */
  const run = async (
    endpoint: Endpoint,
    incoming: IncomingCall,
    timeoutMs: number,
    steps: (call: PipelineCall) => Promise<void>,
  ): Promise<void> => {
    const call = new PipelineCall(parts, endpoint, incoming, timeoutMs);
    running.add(call, incoming);
    try {
      await steps(call);
    } catch (thrown) {
      await fail(call, incoming, thrown).catch((defect: unknown) => failAgain(call, incoming, defect));
    } finally {
      if (call.openedWalk !== null) call.endWalk(call.openedWalk);
      running.remove(incoming);
    }
  };

  /** A stream that ends only with its cause. */
  const live = (endpoint: Endpoint, incoming: StreamCall): Promise<void> =>
    run(endpoint, incoming, Number.POSITIVE_INFINITY, async (call) => {
      await admit(parts, call, incoming);
      // The request has no fields of JSON text, whose parsed form would be kept as long as the stream.
      const { message } = incoming.decode();
      call.request = message;
      streamCredentials.watch(incoming);
      try {
        const answers = await opened(call, (endpoint.handler as LiveStreamHandler)(message, call));
        if (answers === null)
          throw new LedgerError('unavailable', 'The caller left before the stream began: call again.');
        await answers.sendTo((answer) => {
          if (!call.hasRecorded) call.recordAccess();
          const full = incoming.send(call, answer);
          return full && taken(call, full);
        });
      } catch (thrown) {
        // The end of the stream also ends the read under way, which throws another error.
        throw call.ending ?? thrown;
      } finally {
        streamCredentials.unwatch(incoming);
      }
      if (call.ending !== null) throw call.ending;
      await finish(parts, call, incoming);
    });

  return {
    running,

    unary(endpoint: Endpoint, incoming: UnaryCall): Promise<void> {
      return run(endpoint, incoming, limits.callTimeoutMs, async (call) => {
        const signed = await admit(parts, call, incoming);
        const message = take(call, incoming);
        const { changesState, rule, method } = endpoint;
        const key = call.caller !== null && changesState ? incoming.idempotencyKey() : undefined;
        const handle = () => (endpoint.handler as UnaryHandler)(message, call);
        let answer: object;
        if (key === undefined && (signed === null || !changesState)) answer = await handle();
        else {
          const fingerprint = () =>
            fingerprintOf(method.input, message, () => incoming.equivalent(message), incoming.query);
          const once = { key, signed, writesLedger: rule.writesLedger, output: method.output, fingerprint };
          answer = await runOnce(parts, call, once, handle);
        }
        if (call.openedWalk !== null) await call.openedWalk.beforeAnswer();
        const encoding = incoming.encode?.(answer);
        if (encoding !== undefined) await encoding;
        await parts.answers.succeeded(call, incoming);
        if (call.answered) return;
        incoming.succeed(call, answer);
        call.answered = true;
      });
    },

    serverStream(endpoint: Endpoint, incoming: StreamCall): Promise<void> {
      if (endpoint.rule.live) return live(endpoint, incoming);
      return run(endpoint, incoming, limits.serverStreamTimeoutMs, async (call) => {
        await admit(parts, call, incoming);
        const message = take(call, incoming);
        await sendAll(call, incoming, (endpoint.handler as ServerStreamHandler)(message, call));
        await finish(parts, call, incoming);
      });
    },

    async bidi(endpoint: Endpoint, incoming: BidiCall): Promise<void> {
      await run(endpoint, incoming, Number.POSITIVE_INFINITY, async (call) => {
        await admit(parts, call, incoming);
        streamCredentials.watch(incoming);
        try {
          await sendAll(call, incoming, (endpoint.handler as BidiStreamHandler)(incoming.requests, call));
          if (call.ending !== null) throw call.ending;
          await finish(parts, call, incoming);
        } finally {
          streamCredentials.unwatch(incoming);
        }
      });
      incoming.requests.stop();
    },
  };
}

/**
 * Checks the credential and the rate limit, and receives the request. If an entity's signature over the whole request
 * is part of its credential, checks it too and returns what was signed.
 */
async function admit(parts: PipelineParts, call: RunningCall, incoming: IncomingCall): Promise<EntityRequest | null> {
  const { rule } = call.endpoint;
  const caller = await identify(parts.credentials, rule, incoming, call);
  call.caller = caller;
  refuseByWrongClock(parts, call);
  parts.rates.admit(call, parts.monotonicMs());
  const timestamp = demandSignature(call, incoming, parts.now());
  await incoming.receive();
  parts.rates.admitRequest(call, incoming.received, parts.monotonicMs());
  if (caller === null) return null;
  const signature = signatureOf(incoming);
  if (timestamp !== null && signature !== null) {
    const request: EntityRequest = { ...incoming.signedRequest(), timestamp };
    await parts.credentials.verifyEntityRequest(caller.actorId, signature, request);
    call.markVerified();
    return request;
  }
  if (caller.via === 'entity_header' && !rule.signed) return null;
  call.signature = signature;
  call.deliveryChain = incoming.header('x-delivery-chain') ?? null;
  return null;
}

/**
 * Refuses a call of an entity that must sign and has not, before its request is read: it may come from anybody. Returns
 * the time of an ENTITY_REQUEST, null for other calls. Each event of a stream has its own signature.
 */
function demandSignature({ caller, endpoint }: RunningCall, incoming: IncomingCall, nowMs: number): string | null {
  if (caller?.via !== 'entity_header') return null;
  const signature = signatureOf(incoming);
  if (!endpoint.rule.signed) return signedTime(caller, signature, incoming, nowMs);
  if (endpoint.method.methodKind !== 'bidi_streaming') demandEntitySignature({ caller, signature });
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
  const message =
    'The clock of this node is off, so it cannot check what callers may do now; nothing was written, retry to reach another node.';
  throw new LedgerError('unavailable', message);
}

/** Decodes the request and keeps it for the handler and the access records. */
function take(call: RunningCall, incoming: IncomingCall): Message {
  const { message, json } = incoming.decode();
  call.parsed = json;
  call.request = message;
  return message;
}

async function sendAll(call: RunningCall, incoming: StreamCall, answers: AsyncIterable<object>): Promise<void> {
  for await (const answer of answers) {
    if (call.aborted) return;
    const full = incoming.send(call, answer);
    if (full !== undefined) await full;
  }
}

/**
 * What the handler of a live stream opens; from then on the end of the call stops it. Returns null as soon as the call
 * ends, even if the handler still runs.
 */
function opened(call: RunningCall, opening: ReturnType<LiveStreamHandler>): Promise<PushedAnswers<object> | null> {
  return new Promise((resolve, reject) => {
    if (call.aborted) resolve(null);
    else call.onAbort = () => resolve(null);
    opening.then((answers) => {
      if (call.aborted) answers.stop();
      else call.onAbort = () => answers.stop();
      resolve(answers);
    }, reject);
  });
}

/** Waits until the caller takes more, or the call has ended. A caller that takes nothing for too long ends the call. */
function taken(call: RunningCall, full: Promise<void>): Promise<void> {
  if (call.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    call.untakenSinceMs = performance.now();
    const stalled = setTimeout(() => call.endWith(takesNothing()), limits.liveStallMs).unref();
    const { onAbort } = call;
    const goOn = (): void => {
      clearTimeout(stalled);
      call.onAbort = onAbort;
      resolve();
    };
    call.onAbort = () => {
      goOn();
      onAbort?.();
    };
    void full.then(() => {
      // The end of the connection also resolves it.
      if (!call.aborted) call.untakenSinceMs = null;
      goOn();
    });
  });
}

function takesNothing(): LedgerError {
  const message = `The caller took nothing of the stream for ${limits.liveStallMs / 1_000} s: resume it behind the last message.`;
  return new LedgerError('unavailable', message);
}

async function finish(parts: PipelineParts, call: RunningCall, incoming: StreamCall): Promise<void> {
  if (call.answered) return;
  // The caller of a live stream ends it by leaving.
  if (call.aborted && !call.endpoint.rule.live)
    throw new LedgerError('unavailable', 'The stream ended before all of it was sent.');
  await parts.answers.succeeded(call, incoming);
  if (call.answered) return;
  call.answered = true;
  incoming.end(call);
}
