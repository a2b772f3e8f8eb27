import type { ActorDocument, AuthorityKeys, KeySource } from '../client/key-source.ts';
import { canonicalJson } from '../domain/canonical.ts';
import { sha256 } from '../domain/hash.ts';
import { verifyingKey } from '../domain/public-key.ts';
import { checkSignatureForm, verifyDigest } from '../domain/signature.ts';
import { actorCollection } from '../service/identity/actor-record.ts';
import { keyStatus } from '../service/identity/signing-keys.ts';
import { type AuthorityKeyRecord, authorityFingerprint, readAuthorityKeys } from '../service/signatures/authority.ts';
import type { RecordStore } from '../store/record-store.ts';
import type { Finding } from './finding.ts';

/** Actors remembered; some 2 KB each. */
const actorsMax = 10_000;

/** The keys of actors as they stand in a store, each actor read once as long as it is remembered. */
export function storedKeys(records: RecordStore): KeySource {
  const actors = actorCollection(records);
  const known = new Map<string, Promise<ActorDocument>>();
  const read = async (actorId: string): Promise<ActorDocument> => {
    const held = await actors.get(actorId);
    const keys = (held?.value.keys ?? []).map((key) => ({
      kid: key.kid,
      algorithm: 'Ed25519',
      publicKey: key.publicKey,
      status: keyStatus(key),
      preferredSigning: key.preferred,
      validFrom: key.validFrom,
      createdAt: key.createdAt,
      revokedAt: key.revokedAt,
      revokedReason: key.revokedReason,
    }));
    return { actorId, keys };
  };
  return {
    document(actorId) {
      const document = known.get(actorId) ?? read(actorId);
      if (!known.has(actorId) && known.size >= actorsMax) known.clear();
      known.set(actorId, document);
      return document;
    },
  };
}

/** The keys of the authority as they stand in a store, and whether each but the first was begun by the one before it. */
export async function storedAuthority(
  records: RecordStore,
): Promise<{ readonly keys: AuthorityKeys; readonly findings: readonly Finding[] }> {
  const stored = await readAuthorityKeys(records);
  const findings = stored.flatMap((key, at): Finding[] => {
    const before = stored[at - 1];
    const wrong = before === undefined ? null : wrongStart(before, key);
    return wrong === null ? [] : [{ ledgerId: null, seq: null, type: 'invalid_authority_key', detail: wrong }];
  });
  const keys = stored.map((key) => ({
    kid: key.kid,
    algorithm: 'Ed25519',
    publicKey: key.publicKey,
    fingerprint: authorityFingerprint(key),
    validFrom: key.validFrom,
    validTo: key.validTo,
  }));
  return { keys, findings };
}

/** In words, what is wrong with the start of a key; null: the key before has signed it. */
function wrongStart(
  before: AuthorityKeyRecord,
  { kid, publicKey, validFrom, startSig }: AuthorityKeyRecord,
): string | null {
  const wrong = `the start of ${kid} is not signed by ${before.kid}`;
  try {
    const digest = sha256(canonicalJson({ kid, public_key: publicKey, valid_from: validFrom }));
    const signer = verifyingKey(before.publicKey);
    if (signer === null || startSig === null) return wrong;
    return verifyDigest(digest, checkSignatureForm(startSig), signer) ? null : wrong;
  } catch {
    return wrong;
  }
}
