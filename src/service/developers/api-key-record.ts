import type { RecordStore } from '../../store/record-store.ts';
import type { World } from '../calls/call.ts';
import { type Collection, type CollectionRules, collection } from '../records/collection.ts';
import { oneOf, text, textOrNull } from '../records/record-form.ts';

/** Active API keys of one actor. `/developer/me` lists all of them in one answer, which then has some 250 KB. */
export const apiKeysPerActorMax = 1_000;

/** An API key as stored: its SHA-256 instead of the secret. */
export interface ApiKeyRecord {
  /** SHA-256 of the key, hex. Also the id of the record. */
  readonly hash: string;
  readonly keyId: string;
  readonly actorId: string;
  readonly environment: World;
  /** 'in' or 'eu' for production keys. */
  readonly region: string | null;
  /** The part of the key that lists show. */
  readonly prefix: string;
  readonly name: string;
  readonly createdAt: string;
  readonly revokedAt: string | null;
}

export const apiKeyRules: CollectionRules<ApiKeyRecord> = {
  kind: 'api_key',
  form: {
    hash: text,
    keyId: text,
    actorId: text,
    environment: oneOf('sandbox', 'production'),
    region: textOrNull,
    prefix: text,
    name: text,
    createdAt: text,
    revokedAt: textOrNull,
  },
  id: (key) => key.hash,
  lookups: (key) => [
    { name: 'actor', value: key.actorId, order: `${key.createdAt}|${key.keyId}` },
    { name: 'key_id', value: key.keyId, order: '' },
  ],
};

export function apiKeyCollection(store: RecordStore): Collection<ApiKeyRecord> {
  return collection(store, apiKeyRules);
}
