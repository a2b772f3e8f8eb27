import { LedgerError } from '../../domain/errors.ts';
import type { ActorType } from '../../domain/event/event.ts';
import { isUuid } from '../../domain/values/uuid.ts';
import { Auth, type MethodRule } from '../../gen/svc/v1/options_pb.ts';
import type { Caller, CallSignature } from '../../service/calls/call.ts';
import type { Credentials, KeyOwner } from '../../service/developers/credentials.ts';

/** Reads a request header. Several headers of one name are joined by `, `. */
type HeaderReader = { header(name: string): string | undefined };

const actorTypes: ReadonlySet<string> = new Set<ActorType>(['human', 'service', 'external', 'device']);
const BEARER = /^bearer +([^\s,]+)$/i;

/**
 * Finds the caller. Returns null if the method needs no credential. Returns no promise if the credentials are known at
 * once.
 *
 * A Bearer key wins over identity headers. A malformed or unknown key is refused even if there are identity headers.
 * Headers that are sent twice are refused.
 */
export function identify(
  credentials: Credentials,
  rule: MethodRule,
  request: HeaderReader,
): Caller | null | Promise<Caller> {
  if (rule.auth === Auth.NONE) return null;
  const authorization = request.header('authorization');
  if (authorization !== undefined) return byBearer(credentials, authorization, request.header('x-actor-type'));
  const actorId = request.header('x-actor-id');
  if (actorId === undefined || rule.auth === Auth.BEARER) throw noCredential(rule);
  return byHeaders(credentials, actorId, request.header('x-actor-type'));
}

function byBearer(
  credentials: Credentials,
  authorization: string,
  actorType: string | undefined,
): Caller | Promise<Caller> {
  const key = BEARER.exec(authorization)?.[1];
  if (key === undefined) {
    throw new LedgerError('invalid_api_key', 'The Authorization header must be "Bearer" and one API key.');
  }
  const owner = credentials.byApiKey(key);
  return owner instanceof Promise ? owner.then((held) => withKey(held, actorType)) : withKey(owner, actorType);
}

function withKey({ actorId, world, apiKeyId }: KeyOwner, actorType: string | undefined): Caller {
  const type = actorType === undefined ? 'service' : checkedActorType(actorType);
  return { actorId, world, via: 'api_key', apiKeyId, actorType: type, mustSign: false };
}

async function byHeaders(credentials: Credentials, actorId: string, actorType: string | undefined): Promise<Caller> {
  if (!isUuid(actorId)) throw badIdentity('X-ACTOR-ID must be the id of one entity’s actor.', 'X-ACTOR-ID');
  if (actorType === undefined) throw badIdentity('X-ACTOR-ID must come with X-ACTOR-TYPE.', 'X-ACTOR-TYPE');
  const entity = await credentials.byEntityHeaders(actorId, checkedActorType(actorType));
  return {
    actorId: entity.actorId,
    world: entity.world,
    via: 'entity_header',
    apiKeyId: null,
    actorType: entity.actorType,
    mustSign: entity.mustSign,
  };
}

function checkedActorType(text: string): ActorType {
  if (!actorTypes.has(text)) {
    throw badIdentity(`X-ACTOR-TYPE must be one of ${[...actorTypes].join(', ')}.`, 'X-ACTOR-TYPE');
  }
  return text as ActorType;
}

function badIdentity(message: string, header: string): LedgerError {
  return new LedgerError('invalid_actor_identity', message, { header });
}

function noCredential(rule: MethodRule): LedgerError {
  const entity = rule.auth === Auth.BEARER ? '' : ', or the identity headers of an entity';
  return new LedgerError('unauthenticated', `This call needs an API key in the Authorization header${entity}.`);
}

/** Returns the signing headers as sent; null if neither was sent. Throws `invalid_signature` if one was sent twice. */
export function signatureOf(request: HeaderReader): CallSignature | null {
  const signature = request.header('x-actor-sig') ?? null;
  const keyId = request.header('x-signing-key-id') ?? null;
  if (signature === null && keyId === null) return null;
  if (signature?.includes(',')) throw sentTwice('X-Actor-Sig');
  if (keyId?.includes(',')) throw sentTwice('X-Signing-Key-ID');
  return { keyId, signature };
}

function sentTwice(header: string): LedgerError {
  return new LedgerError('invalid_signature', `${header} was sent more than once.`, { header });
}
