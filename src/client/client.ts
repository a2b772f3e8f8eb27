import { randomUUID } from 'node:crypto';
import type { ChannelOptions } from '@grpc/grpc-js';
import type { Dispatcher } from 'undici';
import type { ActorService } from '../gen/svc/v1/actors_pb.ts';
import type { AuditService } from '../gen/svc/v1/audit_pb.ts';
import type { DelegationService } from '../gen/svc/v1/delegation_pb.ts';
import type { DeveloperService } from '../gen/svc/v1/developer_pb.ts';
import type { EngagementService } from '../gen/svc/v1/engagements_pb.ts';
import type { EntityService } from '../gen/svc/v1/entities_pb.ts';
import type { HealthService } from '../gen/svc/v1/health_pb.ts';
import type { LedgerService } from '../gen/svc/v1/ledgers_pb.ts';
import type { MasterService } from '../gen/svc/v1/masters_pb.ts';
import type { OrganizationService } from '../gen/svc/v1/organizations_pb.ts';
import type { ResolverService } from '../gen/svc/v1/resolver_pb.ts';
import type { WebhookService } from '../gen/svc/v1/webhooks_pb.ts';
import { type AppendStream, type AppendStreamOptions, openAppendStream } from './append/append-stream.ts';
import { createCaller } from './call/call.ts';
import { type Credential, checkCredential } from './call/credential.ts';
import { createGrpcTransport } from './call/grpc-transport.ts';
import { createRestTransport } from './call/rest-transport.ts';
import { defaultRetryPolicy, type RetryClock, systemRetryClock } from './call/retry.ts';
import { endpointNamed, endpoints } from './endpoint.ts';
import { createEventReading, type EventReading } from './event-reading.ts';
import type { CallOptions, UnaryMethods } from './methods.ts';

/** What a client is made with. Without a credential, only methods that need none succeed. */
export interface ClientOptions extends Credential {
  /** The service's URL, for example `https://ledger.example`. Required unless `transport` is `grpc`. */
  readonly baseUrl?: string;
  /**
   * `http://host:port` for plain text, `https://host:port` for TLS. Required for append streams, and if `transport` is
   * `grpc`.
   */
  readonly grpcUrl?: string;
  /** The transport of all calls but append streams; `rest` if left out. */
  readonly transport?: 'rest' | 'grpc';
  /** Milliseconds for all attempts and waits of a call together; 30,000 if left out. */
  readonly timeoutMs?: number;
  /** Milliseconds for one attempt; 12,000 if left out. */
  readonly attemptTimeoutMs?: number;
  /** How many times a call is sent at most; 5 if left out. */
  readonly attemptsMax?: number;
  /** How many REST connections at most; 64 if left out. */
  readonly connections?: number;
  /** Certificates to trust in place of the system's, PEM. */
  readonly ca?: string;
  /** An undici dispatcher (proxy, mock) in place of the client's own pool. The client does not close it. */
  readonly dispatcher?: Dispatcher;
  /** Channel options of grpc-js. They override the client's own. */
  readonly grpcChannel?: ChannelOptions;
  /** Milliseconds since 1970, for X-Timestamp. `Date.now` if left out. */
  readonly now?: () => number;
  /** The time and randomness of retries. The system's if left out. */
  readonly retryClock?: RetryClock;
  /** Makes idempotency keys. Random UUIDs if left out. */
  readonly newId?: () => string;
}

/**
 * The typed client of the Ledger Trust Service: a method for each method of the API, the same over REST and gRPC. Calls
 * are signed if they have to be, and retried if that is safe.
 *
 * A call rejects with LedgerTrustError, with the signal's reason after an abort, or with TypeError if the request has
 * an unknown field or a value of the wrong type.
 */
export interface LedgerTrustClient
  extends UnaryMethods<typeof HealthService>,
    UnaryMethods<typeof DeveloperService>,
    UnaryMethods<typeof ActorService>,
    UnaryMethods<typeof ResolverService>,
    UnaryMethods<typeof OrganizationService>,
    UnaryMethods<typeof EntityService>,
    UnaryMethods<typeof EngagementService>,
    UnaryMethods<typeof LedgerService>,
    UnaryMethods<typeof MasterService>,
    UnaryMethods<typeof DelegationService>,
    UnaryMethods<typeof AuditService>,
    UnaryMethods<typeof WebhookService>,
    EventReading,
    AsyncDisposable {
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
  const grpc =
    options.grpcUrl === undefined
      ? null
      : createGrpcTransport({ grpcUrl: options.grpcUrl, ca: options.ca, channel: options.grpcChannel });
  const rest =
    options.baseUrl === undefined
      ? null
      : createRestTransport({
          baseUrl: options.baseUrl,
          connections: options.connections ?? 64,
          ca: options.ca,
          dispatcher: options.dispatcher,
        });
  const transport = options.transport === 'grpc' ? grpc : rest;
  if (transport === null) throw new TypeError(`${options.transport === 'grpc' ? 'grpcUrl' : 'baseUrl'} must be given`);

  const clock = options.retryClock ?? systemRetryClock;
  const newId = options.newId ?? randomUUID;
  const caller = createCaller({
    transport,
    credential: options,
    policy: {
      timeoutMs: options.timeoutMs ?? defaultRetryPolicy.timeoutMs,
      attemptTimeoutMs: options.attemptTimeoutMs ?? defaultRetryPolicy.attemptTimeoutMs,
      attemptsMax: options.attemptsMax ?? defaultRetryPolicy.attemptsMax,
    },
    clock,
    now: options.now ?? Date.now,
    newId,
  });

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
      return openAppendStream(
        { transport: grpc, credential: options, facts: caller.facts, clock, newId },
        streamOptions,
      );
    },
    close,
    [Symbol.asyncDispose]: close,
  }) as unknown as LedgerTrustClient;
}
