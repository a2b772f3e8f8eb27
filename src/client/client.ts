import { randomUUID } from 'node:crypto';
import { type AppendStream, type AppendStreamOptions, GrpcAppendStream } from './append/append-stream.ts';
import { createCaller } from './call/call.ts';
import type { ClientOptions } from './call/client-options.ts';
import { checkCredential } from './call/credential.ts';
import { createGrpcTransport } from './call/grpc-transport.ts';
import { createRestTransport } from './call/rest-transport.ts';
import { systemRetryClock } from './call/retry.ts';
import { endpointNamed, endpoints, type services } from './endpoint.ts';
import { createEventReading, type EventReading } from './event-reading.ts';
import type { CallOptions, UnaryMethods } from './methods.ts';

/**
 * The typed client of the Ledger Trust Service: a method for each method of the API, the same over REST and gRPC. Calls
 * are signed if they have to be, and retried if that is safe.
 *
 * A call rejects with LedgerTrustError, with the signal's reason after an abort, or with TypeError if the request has
 * an unknown field or a value of the wrong type.
 */
export interface LedgerTrustClient extends UnaryMethods<typeof services>, EventReading, AsyncDisposable {
  /** Runs the service's demonstration (GET /sandbox/run) and yields its lines as they arrive. */
  runSandbox(options?: Pick<CallOptions, 'signal'>): AsyncIterable<string>;
  /**
   * Opens a stream for clients that append continuously. Throws TypeError without `grpcUrl`, or for limits that cannot
   * work.
   */
  appendStream(options?: AppendStreamOptions): AppendStream;
  /**
   * Sends nothing more, and closes the connections once the running calls have ended. Close append streams first:
   * events that they have not sent are rejected.
   */
  close(): Promise<void>;
}

/** Makes a client. Sends nothing before the first call. Throws TypeError for options that cannot work. */
export function createClient(options: ClientOptions): LedgerTrustClient {
  checkCredential(options);
  const { baseUrl, grpcUrl, retryClock: clock = systemRetryClock, newId = randomUUID, now = Date.now } = options;
  const { timeoutMs = 30_000, attemptTimeoutMs = 12_000, attemptsMax = 5 } = options;
  const grpc = grpcUrl === undefined ? null : createGrpcTransport(grpcUrl, options);
  const rest = baseUrl === undefined ? null : createRestTransport(baseUrl, options);
  const transport = options.transport === 'grpc' ? grpc : rest;
  if (transport === null) throw new TypeError(`${options.transport === 'grpc' ? 'grpcUrl' : 'baseUrl'} must be given`);
  const policy = { timeoutMs, attemptTimeoutMs, attemptsMax };
  const caller = createCaller({ transport, credential: options, policy, clock, now, newId });

  const methods: Record<string, unknown> = {};
  for (const endpoint of endpoints.values()) {
    if (endpoint.method.methodKind !== 'unary') continue;
    methods[endpoint.name] = async (request: object = {}, callOptions: CallOptions = {}) => {
      const answer = await caller.call(endpoint, { ...request }, callOptions);
      return endpoint.method.output.fields.length === 0 ? undefined : answer;
    };
  }

  const close = async (): Promise<void> => {
    await Promise.all([rest?.close(), grpc?.close()]);
  };
  // The type and this object are made from the same descriptors.
  return Object.freeze({
    ...methods,
    ...createEventReading(caller),
    async *runSandbox({ signal }: Pick<CallOptions, 'signal'> = {}) {
      for await (const { line } of caller.stream(endpointNamed('runSandbox'), signal)) yield String(line);
    },
    appendStream(streamOptions: AppendStreamOptions = {}) {
      if (grpc === null) throw new TypeError('An append stream goes over gRPC: give the client a grpcUrl');
      const { facts } = caller;
      return new GrpcAppendStream({ transport: grpc, credential: options, facts, clock, newId }, streamOptions);
    },
    close,
    [Symbol.asyncDispose]: close,
  }) as unknown as LedgerTrustClient;
}
