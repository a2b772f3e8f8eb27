import type { ActorType } from '../../domain/event/event.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { World } from '../calls/call.ts';
import type { ChangedRecord } from '../idempotency/change-once.ts';
import { type Collection, type CollectionRules, collection } from '../records/collection.ts';
import {
  type FormOf,
  flag,
  listOf,
  objectOf,
  optional,
  orNull,
  text,
  textOrNull,
  worldOrNull,
} from '../records/record-form.ts';

/** A public signing key of an actor. Times are ISO. Keys are never removed: old signatures are verified with them. */
export interface SigningKeyRecord {
  readonly kid: string;
  /** base64, 32 bytes. */
  readonly publicKey: string;
  readonly preferred: boolean;
  readonly validFrom: string;
  readonly createdAt: string;
  /** When the revocation began. From then on no signature under the key is accepted. */
  readonly endingSince?: string;
  /** null if the key's end is not dated. An event dated before it stays valid. */
  readonly revokedAt: string | null;
  readonly revokedReason: string | null;
}

/** An actor with its keys, in one record: numbering the keys and keeping at most one preferred is one atomic write. */
export interface ActorRecord extends ChangedRecord {
  readonly actorId: string;
  readonly role: string;
  /** null if the actor belongs to neither world. */
  readonly world: World | null;
  /** Set for entities. null for every other actor. */
  readonly entity: {
    readonly entityId: string;
    readonly actorType: ActorType;
    readonly ownerActorId: string | null;
  } | null;
  /** As given at registration. null for every other actor. */
  readonly developer: { readonly name: string; readonly email: string } | null;
  readonly createdAt: string;
  readonly keys: readonly SigningKeyRecord[];
}

const signingKeyForm: FormOf<SigningKeyRecord> = {
  kid: text,
  publicKey: text,
  preferred: flag,
  validFrom: text,
  createdAt: text,
  endingSince: optional(text),
  revokedAt: textOrNull,
  revokedReason: textOrNull,
};

export const actorRules: CollectionRules<ActorRecord> = {
  kind: 'actor',
  form: {
    actorId: text,
    role: text,
    world: worldOrNull,
    entity: orNull(
      objectOf<NonNullable<ActorRecord['entity']>>({ entityId: text, actorType: text, ownerActorId: textOrNull }),
    ),
    developer: orNull(objectOf<NonNullable<ActorRecord['developer']>>({ name: text, email: text })),
    createdAt: text,
    keys: listOf(objectOf(signingKeyForm)),
    changedBy: optional(listOf(text)),
  },
  id: (actor) => actor.actorId,
  lookups: (actor) => [{ name: 'world', value: actor.world ?? 'none', order: actor.createdAt }],
};

export function actorCollection(store: RecordStore): Collection<ActorRecord> {
  return collection(store, actorRules);
}
