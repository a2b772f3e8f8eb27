import { LedgerError } from '../../domain/errors.ts';
import { type ActorType, actorTypes } from '../../domain/event/event.ts';
import { isUuid } from '../../domain/values/uuid-form.ts';
import { Auth, type MethodRule } from '../../gen/svc/v1/options_pb.ts';
import type { Caller, CallSignature } from '../../service/calls/call.ts';
import type { Credentials, UnknownCaller } from '../../service/developers/credentials.ts';
import type { IncomingCall } from '../call/incoming-call.ts';

type HeaderReader = Pick<IncomingCall, 'header'>;

const BEARER = /^bearer +([^\s,]+)$/i;

/**
 * Finds the caller; null if the method needs no credential. A Bearer key wins over identity headers. A malformed or
 * unknown key is refused even if there are identity headers. Headers that are sent twice are refused.
 */
export async function identify(
  credentials: Credentials,
  rule: MethodRule,
  request: HeaderReader,
  unknown: UnknownCaller,
): Promise<Caller | null> {
  if (rule.auth === Auth.NONE) return null;
  const authorization = request.header('authorization');
  const actorType = request.header('x-actor-type');
  if (authorization !== undefined) return byBearer(credentials, authorization, actorType, unknown);
  const actorId = request.header('x-actor-id');
  if (actorId === undefined || rule.auth === Auth.BEARER) throw noCredential(rule);
  return byHeaders(credentials, actorId, actorType, unknown);
}

async function byBearer(
  credentials: Credentials,
  authorization: string,
  actorType: string | undefined,
  unknown: UnknownCaller,
): Promise<Caller> {
  const key = BEARER.exec(authorization)?.[1];
  if (key === undefined)
    throw new LedgerError('invalid_api_key', 'The Authorization header must be "Bearer" and one API key.', {
      header: 'Authorization',
    });
  const { actorId, world, apiKeyId } = await credentials.byApiKey(key, unknown);
  const type = actorType === undefined ? 'service' : checkedActorType(actorType);
  return { actorId, world, via: 'api_key', apiKeyId, actorType: type, mustSign: false };
}

async function byHeaders(
  credentials: Credentials,
  actorId: string,
  actorType: string | undefined,
  unknown: UnknownCaller,
): Promise<Caller> {
  if (!isUuid(actorId)) throw badIdentity('X-ACTOR-ID must be the id of one entity’s actor.', 'X-ACTOR-ID');
  if (actorType === undefined) throw badIdentity('X-ACTOR-ID must come with X-ACTOR-TYPE.', 'X-ACTOR-TYPE');
  const entity = await credentials.byEntityHeaders(actorId, checkedActorType(actorType), unknown);
  return { ...entity, via: 'entity_header', apiKeyId: null };
}

function checkedActorType(text: string): ActorType {
  if (actorTypes.has(text)) return text as ActorType;
  throw badIdentity(`X-ACTOR-TYPE must be one of ${[...actorTypes].join(', ')}.`, 'X-ACTOR-TYPE');
}

function badIdentity(message: string, header: string): LedgerError {
  return new LedgerError('invalid_actor_identity', message, { header });
}

function noCredential(rule: MethodRule): LedgerError {
  const entity = rule.auth === Auth.BEARER ? '' : ', or the identity headers of an entity';
  const message = `This call needs an API key in the Authorization header${entity}.`;
  return new LedgerError('unauthenticated', message, { header: 'Authorization' });
}

/** Returns the signing headers as sent; null if neither was sent. Throws `invalid_signature` if one was sent twice. */
export function signatureOf(request: HeaderReader): CallSignature | null {
  const signature = request.header('x-actor-sig') ?? null;
  const keyId = request.header('x-signing-key-id') ?? null;
  if (signature === null && keyId === null) return null;
  if (signature?.includes(',')) throw sentTwice('X-Actor-Sig');
  if (keyId?.includes(',')) throw sentTwice('X-Signing-Key-ID');
  const digest = request.header('x-actor-digest') ?? null;
  const canonical = request.header('x-actor-canonical') ?? null;
  return digest === null && canonical === null
    ? { keyId, signature }
    : { keyId, signature, stated: { digest, canonical } };
}

function sentTwice(header: string): LedgerError {
  return new LedgerError('invalid_signature', `${header} was sent more than once.`, { header });
}
