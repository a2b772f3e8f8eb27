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
import { type AppendStream, type AppendStreamOptions, openAppendStream } from './append-stream.ts';
import { createCaller } from './call.ts';
import { type Credential, checkCredential } from './credential.ts';
import { endpointNamed, endpoints } from './endpoint.ts';
import { createEventReading, type EventReading } from './event-reading.ts';
import { createGrpcTransport } from './grpc-transport.ts';
import type { CallOptions, UnaryMethods } from './methods.ts';
import { createRestTransport } from './rest-transport.ts';
import { defaultRetryPolicy, type RetryClock, systemRetryClock } from './retry.ts';

export interface ClientOptions extends Credential {
  /** For example `https://ledger.example`; needed unless `transport` is `grpc`. */
  readonly baseUrl?: string;
  /** `http://host:port` for plain text, `https://host:port` for TLS; needed for append streams and for `transport: 'grpc'`. */
  readonly grpcUrl?: string;
  /** Over what all other calls go; `rest` if not given. */
  readonly transport?: 'rest' | 'grpc';
  /** All attempts and waits of a call together, in milliseconds; 30,000 if not given. */
  readonly timeoutMs?: number;
  /** One attempt, in milliseconds; 12,000 if not given. */
  readonly attemptTimeoutMs?: number;
  /** 5 if not given. */
  readonly attemptsMax?: number;
  /** REST connections at most; 64 if not given. */
  readonly connections?: number;
  /** Certificates to trust in place of the system's, PEM. */
  readonly ca?: string;
  /** An undici dispatcher (proxy, mock) in place of the client's own pool. */
  readonly dispatcher?: Dispatcher;
  /** Channel options of grpc-js. */
  readonly grpcChannel?: ChannelOptions;
  /** Milliseconds since 1970: what X-Timestamp says. */
  readonly now?: () => number;
  readonly retryClock?: RetryClock;
  /** Makes idempotency keys. */
  readonly newId?: () => string;
}

/**
 * The typed client of the Ledger Trust Service: a method for each of the API's, over REST or gRPC alike. Calls are signed
 * where they have to be, retried where that is safe, and fail with LedgerTrustError.
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
  /** Runs the service's own demonstration (GET /sandbox/run) and hands out its lines as they come. */
  runSandbox(options?: Pick<CallOptions, 'signal'>): AsyncIterable<string>;
  /** Opens a stream for those who append all day; needs `grpcUrl`. */
  appendStream(options?: AppendStreamOptions): AppendStream;
  /** Sends nothing more, and lets go of connections once what is under way has ended. Close append streams first: what they have not sent is rejected. */
  close(): Promise<void>;
}

/** Makes a client. TypeError for options that cannot work. Nothing is sent before the first call. */
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
  // The descriptors are what both the type and this object are made of.
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
