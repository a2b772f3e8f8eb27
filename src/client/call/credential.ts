import type { ActorType } from '../../domain/event/event.ts';
import type { Endpoint } from '../endpoint.ts';
import { entityRequestInput, type Signer, signatureHeaders } from '../signing/signing.ts';
import type { Headers, Wire } from '../transport.ts';

/** The identity of the caller: an API key, the header identity of an entity, or none. */
export interface Credential {
  readonly apiKey?: string;
  /** With an API key: the actor_type of the caller's events. The service uses `service` if it is left out. */
  readonly actorType?: ActorType;
  /** Header identity. An entity that has keys also needs a signer. */
  readonly entity?: { readonly actorId: string; readonly actorType: ActorType };
  /** Signs the caller's events and, for an entity, all its other calls. */
  readonly signer?: Signer;
}

/** Throws TypeError for two credentials, and for an API key with characters that no API key has. */
export function checkCredential(credential: Credential): void {
  if (credential.apiKey !== undefined && credential.entity !== undefined) {
    throw new TypeError('Give either apiKey or entity: with an API key the identity headers of an entity do not count');
  }
  if (credential.apiKey !== undefined && !/^[\x21-\x7e]+$/.test(credential.apiKey)) {
    throw new TypeError('The API key holds characters that no API key has');
  }
}

export function identityHeaders(credential: Credential, endpoint: Endpoint): Headers {
  if (!endpoint.hasCaller) return {};
  const { apiKey, entity, actorType } = credential;
  if (entity !== undefined) return { 'x-actor-id': entity.actorId, 'x-actor-type': entity.actorType };
  if (apiKey === undefined) return {};
  return { authorization: `Bearer ${apiKey}`, ...(actorType === undefined ? {} : { 'x-actor-type': actorType }) };
}

/** Whether the call is signed as a whole (ENTITY_REQUEST), not by the signature of the event that it writes. */
export function signsRequest(credential: Credential, endpoint: Endpoint): boolean {
  return (
    credential.signer !== undefined && credential.entity !== undefined && endpoint.hasCaller && !endpoint.signsEvent
  );
}

/** The headers that sign a whole request. Each attempt needs new ones, because the time in them must be recent. */
export async function requestSignature(credential: Credential, wire: Wire, nowMs: number): Promise<Headers> {
  const { signer, entity } = credential;
  if (signer === undefined || entity === undefined) return {};
  const timestamp = new Date(nowMs).toISOString();
  const headers = await signatureHeaders(signer, entityRequestInput(entity.actorId, wire, timestamp));
  return { ...headers, 'x-timestamp': timestamp };
}
