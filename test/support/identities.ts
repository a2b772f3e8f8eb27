import { verifyDigest } from '../../src/domain/keys/key-object.ts';
import { Identities } from '../../src/service/actors/identities.ts';
import { changeMutex } from '../../src/service/records/change-mutex.ts';
import type { RecordStore } from '../../src/store/record-store.ts';

/** Identities that verify signatures on the thread of the test. */
export function identitiesIn(store: RecordStore, now: () => number): Identities {
  return new Identities(
    store,
    now,
    async (digest, signature, key) => verifyDigest(digest, signature, key),
    changeMutex(),
  );
}
