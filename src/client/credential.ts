import type { ActorType } from '../domain/event.ts';
import type { Endpoint } from './endpoint.ts';
import { entityRequestInput, type Signer, signatureHeaders } from './signing.ts';
import type { Headers, Wire } from './transport.ts';

/** Who calls. An API key, or the header identity of an entity, or nobody. */
export interface Credential {
  readonly apiKey?: string;
  /** With an API key: what the caller's events carry as actor_type; the service takes `service` if it is not given. */
  readonly actorType?: ActorType;
  /** An entity that has keys also needs a signer. */
  readonly entity?: { readonly actorId: string; readonly actorType: ActorType };
  readonly signer?: Signer;
}

/** TypeError for two credentials at once, of which the service would pass over one. */
export function checkCredential(credential: Credential): void {
  if (credential.apiKey !== undefined && credential.entity !== undefined) {
    throw new TypeError('Give either apiKey or entity: with an API key the identity headers of an entity do not count');
  }
  if (credential.apiKey !== undefined && !/^[\x21-\x7e]+$/.test(credential.apiKey)) {
    throw new TypeError('The API key holds characters that no API key has');
  }
}

/** The headers that say who calls; none on methods that take no credential. */
export function identityHeaders(credential: Credential, endpoint: Endpoint): Headers {
  if (!endpoint.hasCaller) return {};
  const { apiKey, entity, actorType } = credential;
  if (entity !== undefined) return { 'x-actor-id': entity.actorId, 'x-actor-type': entity.actorType };
  if (apiKey === undefined) return {};
  return { authorization: `Bearer ${apiKey}`, ...(actorType === undefined ? {} : { 'x-actor-type': actorType }) };
}

/** Whether a call is signed as a whole (ENTITY_REQUEST) and not by the event that it makes. */
export function signsRequest(credential: Credential, endpoint: Endpoint): boolean {
  return (
    credential.signer !== undefined && credential.entity !== undefined && endpoint.hasCaller && !endpoint.signsEvent
  );
}

/** The headers that sign a whole request; made anew for every attempt, since the time in them must be recent. */
export async function requestSignature(credential: Credential, wire: Wire, nowMs: number): Promise<Headers> {
  const { signer, entity } = credential;
  if (signer === undefined || entity === undefined) return {};
  const timestamp = new Date(nowMs).toISOString();
  const headers = await signatureHeaders(signer, entityRequestInput(entity.actorId, wire, timestamp));
  return { ...headers, 'x-timestamp': timestamp };
}
