import { parseKid } from '../../domain/keys/signature.ts';
import type { GetDeveloperResponse } from '../../gen/svc/v1/developer_pb.ts';
import type { GetRootLedgerResponse } from '../../gen/svc/v1/entities_pb.ts';
import type { ListLedgerEventsResponse } from '../../gen/svc/v1/ledgers_pb.ts';
import type { CreateMasterRequest, CreateMasterResponse, GetMasterResponse } from '../../gen/svc/v1/masters_pb.ts';
import type { GetOrganizationResponse } from '../../gen/svc/v1/organizations_pb.ts';
import { type Endpoint, endpointNamed } from '../endpoint.ts';
import { asClientError } from '../error.ts';
import type { CallOptions } from '../methods.ts';
import type { Answer, Request } from '../shapes.ts';
import { createFacts, type Facts } from '../signing/facts.ts';
import { eventSigningInput } from '../signing/signed-calls.ts';
import { signatureHeaders } from '../signing/signing.ts';
import type { Headers, LiveMessage, Received, Transport, Wire } from '../transport.ts';
import { type Credential, identityHeaders, requestSignature, signsRequest } from './credential.ts';
import { givenFields, type RequestFields } from './request-encoding.ts';
import { type RetryClock, type RetryPolicy, withRetries } from './retry.ts';

interface CallerParts {
  readonly transport: Transport;
  readonly credential: Credential;
  readonly policy: RetryPolicy;
  readonly clock: RetryClock;
  /** Milliseconds since 1970. */
  now(): number;
  newId(): string;
}

/** Makes calls by endpoint: signs them, gives them idempotency keys and retries them. */
export interface Caller {
  call(endpoint: Endpoint, request: RequestFields, options: CallOptions): Promise<Readonly<Record<string, unknown>>>;
  stream(endpoint: Endpoint, signal: AbortSignal | undefined): AsyncIterable<Readonly<Record<string, unknown>>>;
  /** Opens a live stream once. Throws what a call throws. */
  live(endpoint: Endpoint, request: RequestFields, signal: AbortSignal): AsyncIterable<LiveMessage>;
  readonly facts: Facts;
}

/** Calls a method by its name. `M` is the message of its answer. */
export async function ask<M>(
  caller: Pick<Caller, 'call'>,
  name: string,
  request: object,
  options: CallOptions,
): Promise<Answer<M>> {
  // The answer was decoded with the descriptor of the same method.
  return (await caller.call(endpointNamed(name), { ...request }, options)) as unknown as Answer<M>;
}

export function createCaller(parts: CallerParts): Caller {
  const { transport, credential } = parts;

  const read = <M>(name: string, request: object) => ask<M>({ call }, name, request, {});
  const facts = createFacts({
    genesis: async (ledgerId) =>
      (await read<ListLedgerEventsResponse>('listLedgerEvents', { ledgerId, limit: 1 })).events[0],
    master: async (uuid) => masterNames(await read<GetMasterResponse>('getMaster', { uuid })),
    organizationLedger: async (id) => (await read<GetOrganizationResponse>('getOrganization', { id })).frlLedgerId,
    rootLedger: async (actorId) => (await read<GetRootLedgerResponse>('getRootLedger', { actorId })).ledgerId,
    caller: async () => {
      const kid = parseKid(credential.signer?.keyId ?? '');
      const known = credential.entity?.actorId ?? kid?.actorId;
      return known ?? (await read<GetDeveloperResponse>('getDeveloper', {})).actorId;
    },
  });

  /** The headers that are the same for all attempts. */
  const headersOf = async (endpoint: Endpoint, request: RequestFields, options: CallOptions): Promise<Headers> => {
    const headers: Record<string, string> = { ...identityHeaders(credential, endpoint) };
    if (options.requestId !== undefined) headers['x-request-id'] = options.requestId;
    if (options.deliveryChain !== undefined) {
      if (endpoint.name !== 'appendEvent') throw new TypeError('A delivery chain goes with appendEvent alone');
      headers['x-delivery-chain'] = deliveryChainJson(options.deliveryChain);
    }
    const hasCredential = credential.apiKey !== undefined || credential.entity !== undefined;
    if (endpoint.hasCaller && endpoint.changesState && hasCredential) {
      headers['idempotency-key'] = options.idempotencyKey ?? parts.newId();
    }
    if (credential.signer !== undefined && endpoint.hasCaller && !signsRequest(credential, endpoint)) {
      const input = await eventSigningInput(endpoint.name, request, facts);
      if (input !== null) Object.assign(headers, await signatureHeaders(credential.signer, input));
    }
    return headers;
  };

  const call: Caller['call'] = async (endpoint, request, options) => {
    let wire: Wire;
    let headers: Headers;
    try {
      wire = transport.encode(endpoint, givenFields(endpoint.method.input, request));
      headers = await headersOf(endpoint, request, options);
    } catch (error) {
      throw asClientError(error);
    }
    const kind = !endpoint.changesState ? 'read' : 'idempotency-key' in headers ? 'keyed' : 'unkeyed';
    const { timeoutMs = parts.policy.timeoutMs, attemptsMax = parts.policy.attemptsMax } = options;
    const policy: RetryPolicy = { ...parts.policy, timeoutMs, attemptsMax };
    let attempts = 0;
    const send = async (signal: AbortSignal, attempt: number): Promise<Received> => {
      attempts = attempt;
      const signed = signsRequest(credential, endpoint) ? await requestSignature(credential, wire, parts.now()) : {};
      return transport.send(wire, { ...headers, ...signed }, signal);
    };
    const { answer, ...received } = await withRetries(policy, parts.clock, kind, options.signal, send);
    options.onAnswer?.({ ...received, attempts });
    if (endpoint.name === 'createMaster') {
      const asked = request as unknown as Request<CreateMasterRequest>;
      facts.noteMaster(asked, masterNames(answer as unknown as Answer<CreateMasterResponse>));
    }
    return answer;
  };

  return {
    call,
    stream(endpoint, signal) {
      const wire = transport.encode(endpoint, new Map());
      return transport.stream(wire, identityHeaders(credential, endpoint), signal ?? new AbortController().signal);
    },
    async *live(endpoint, request, signal) {
      let wire: Wire;
      try {
        wire = transport.encode(endpoint, givenFields(endpoint.method.input, request));
      } catch (error) {
        throw asClientError(error);
      }
      const signed = signsRequest(credential, endpoint) ? await requestSignature(credential, wire, parts.now()) : {};
      yield* transport.live(wire, { ...identityHeaders(credential, endpoint), ...signed }, signal);
    },
    facts,
  };
}

function masterNames(master: Pick<Answer<GetMasterResponse>, 'uuid' | 'ledgerId' | 'businessRef' | 'scope'>) {
  return { masterId: master.uuid, ledgerId: master.ledgerId, businessRef: master.businessRef, scope: master.scope };
}

/** The JSON of X-Delivery-Chain. Escaped to ASCII, because HTTP headers carry only ASCII reliably. */
export function deliveryChainJson(chain: NonNullable<CallOptions['deliveryChain']>): string {
  const items = chain.map((item) => ({ actor_id: item.actorId, actor_type: item.actorType, role: item.role }));
  return JSON.stringify(items).replace(
    /[\u0080-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
