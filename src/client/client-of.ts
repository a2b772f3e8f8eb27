import { toHex } from '../domain/keys/hex.ts';
import type { AppendStream, AppendStreamOptions } from './append/append-api.ts';
import { createCaller } from './call/call.ts';
import type { ClientOptions } from './call/client-options.ts';
import { checkCredential } from './call/credential.ts';
import type { HttpSender } from './call/http-sender.ts';
import { restAddress } from './call/rest-address.ts';
import { createRestTransport } from './call/rest-transport.ts';
import { type RetryClock, systemRetryClock } from './call/retry.ts';
import { endpointNamed, endpoints } from './endpoint.ts';
import { clientClosed } from './error.ts';
import { createEventReading } from './event-reading.ts';
import { createFollowing } from './follow/follow.ts';
import type { LedgerTrustClient } from './ledger-trust-client.ts';
import type { CallOptions } from './methods.ts';
import { createProofReading, ProofReader } from './proofs/proof-reading.ts';
import type { Facts } from './signing/facts.ts';
import type { Transport } from './transport.ts';

/** A gRPC transport, and the append streams that it opens. */
export interface GrpcParts {
  readonly transport: Transport;
  appendStream(parts: AppendParts, options: AppendStreamOptions): AppendStream;
}

interface AppendParts {
  readonly credential: ClientOptions;
  readonly facts: Facts;
  readonly clock: RetryClock;
  newId(): string;
}

/** Makes a client of the given options. `grpc` is null without `grpcUrl`. */
export function clientOf(
  options: ClientOptions,
  sender: (origin: string) => HttpSender,
  grpc: GrpcParts | null,
): LedgerTrustClient {
  checkCredential(options);
  const { baseUrl, retryClock: clock = systemRetryClock, newId = randomId, now = Date.now } = options;
  const { timeoutMs = 30_000, attemptTimeoutMs = 12_000, attemptsMax = 5 } = options;
  const rest = baseUrl === undefined ? null : restOf(baseUrl, sender);
  const transport = options.transport === 'grpc' ? (grpc?.transport ?? null) : rest;
  if (transport === null) throw new TypeError(`${options.transport === 'grpc' ? 'grpcUrl' : 'baseUrl'} must be given`);
  const policy = { timeoutMs, attemptTimeoutMs, attemptsMax };
  const caller = createCaller({ transport, credential: options, policy, clock, now, newId });

  const proofs = new ProofReader(caller, options.watermarks);

  const methods: Record<string, unknown> = {};
  for (const endpoint of endpoints.values()) {
    if (endpoint.method.methodKind !== 'unary') continue;
    methods[endpoint.name] = async (request: object = {}, callOptions: CallOptions = {}) => {
      const answer = await caller.call(endpoint, { ...request }, callOptions);
      return endpoint.method.output.fields.length === 0 ? undefined : answer;
    };
  }

  const closing = new AbortController();
  const close = async (): Promise<void> => {
    closing.abort(clientClosed());
    await Promise.all([rest?.close(), grpc?.transport.close()]);
  };
  // The type and this object are made from the same descriptors.
  return Object.freeze({
    ...methods,
    ...createEventReading(caller),
    ...createProofReading(proofs),
    ...createFollowing({ caller, proofs, clock, attemptsMax, closing: closing.signal }),
    async *runSandbox({ signal }: Pick<CallOptions, 'signal'> = {}) {
      for await (const { line } of caller.stream(endpointNamed('runSandbox'), signal)) yield String(line);
    },
    appendStream(streamOptions: AppendStreamOptions = {}) {
      if (grpc === null) throw new TypeError('An append stream goes over gRPC: give the client a grpcUrl');
      return grpc.appendStream({ credential: options, facts: caller.facts, clock, newId }, streamOptions);
    },
    close,
    [Symbol.asyncDispose]: close,
  }) as unknown as LedgerTrustClient;
}

function restOf(baseUrl: string, sender: (origin: string) => HttpSender): Transport {
  const { origin, prefix } = restAddress(baseUrl);
  return createRestTransport(prefix, sender(origin));
}

/** Pages that were loaded without TLS have no `crypto.randomUUID`. */
function randomId(): string {
  return crypto.randomUUID?.() ?? toHex(crypto.getRandomValues(new Uint8Array(16)));
}
