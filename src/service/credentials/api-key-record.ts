import type { RecordStore } from '../../store/record-store.ts';
import type { World } from '../call.ts';
import { type Collection, type CollectionRules, collection } from '../collection.ts';
import { oneOf, text, textOrNull } from '../record-form.ts';

/** API keys of an actor that are not revoked: `/developer/me` shows them all in one answer, of some 250 KB then. */
export const apiKeysPerActorMax = 1_000;

/** An API key as it is kept: the secret itself is not, only its SHA-256. */
export interface ApiKeyRecord {
  /** SHA-256 of the key, hex; the record's id. */
  readonly hash: string;
  readonly keyId: string;
  readonly actorId: string;
  readonly environment: World;
  /** 'in' or 'eu' for production keys. */
  readonly region: string | null;
  /** What lists show of it. */
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
