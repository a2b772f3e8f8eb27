import {
  API_KEY_RANDOM_BYTES,
  apiKeyHash,
  apiKeyPrefix,
  formatApiKey,
  type Region,
} from '../../domain/keys/api-key.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { Call, World } from '../calls/call.ts';
import type { ApiKeyRecord } from './api-key-record.ts';

/**
 * Makes an API key. Returns the secret, which is shown once, and the record to store. The key is made of the call's own
 * random bytes, so that a retry makes the same one.
 */
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
