import { API_KEY_RANDOM_BYTES, apiKeyHash, apiKeyPrefix, formatApiKey, type Region } from '../../domain/api-key.ts';
import { isoTime } from '../../domain/time.ts';
import type { Call, World } from '../call.ts';
import type { ApiKeyRecord } from './api-key-record.ts';

/** Makes an API key: the secret, shown once, and the record that is kept of it. The call's own randomness makes it. */
export function mintApiKey(
  call: Call,
  owner: {
    readonly actorId: string;
    readonly environment: World;
    readonly region: Region | null;
    readonly name: string;
  },
): { readonly secret: string; readonly record: ApiKeyRecord } {
  const keyId = call.newId();
  const random = call.randomBytes(API_KEY_RANDOM_BYTES);
  const secret = formatApiKey({ environment: owner.environment, region: owner.region, random });
  return {
    secret,
    record: {
      ...owner,
      hash: apiKeyHash(secret),
      keyId,
      prefix: apiKeyPrefix(secret),
      createdAt: isoTime(call.now),
      revokedAt: null,
    },
  };
}
