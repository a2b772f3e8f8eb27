import type { ActorDocument, AuthorityKeys, KeySource } from '../../client/verify/key-source.ts';
import { canonicalJson } from '../../domain/json/canonical.ts';
import { sha256 } from '../../domain/keys/hash.ts';
import { verifyDigest } from '../../domain/keys/key-object.ts';
import { checkSignatureForm } from '../../domain/keys/signature.ts';
import { verifyingKey } from '../../domain/keys/verifying-key.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import { actorCollection } from '../../service/actors/actor-record.ts';
import { keyMessage } from '../../service/actors/actors.ts';
import { type AuthorityKeyRecord, authorityFingerprint, readAuthorityKeys } from '../../service/authority/authority.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { UnreadableRecord } from '../../store/unreadable-record.ts';
import type { Finding } from './finding.ts';

/** Actors cached, some 2 KB each. */
const actorsMax = 10_000;

/** The actors' keys from a store. For a damaged actor the source returns null, and calls `found` once. */
export function storedKeys(records: RecordStore, found: (finding: Finding) => void): KeySource {
  const actors = actorCollection(records);
  const known = new RecentMap<string, Promise<ActorDocument | null>>(actorsMax);
  const damaged = new Set<string>();
  const read = async (actorId: string): Promise<ActorDocument | null> => {
    try {
      const keys = (await actors.get(actorId))?.value.keys ?? [];
      return { actorId, keys: keys.map((key) => ({ revokedAt: null, revokedReason: null, ...keyMessage(key) })) };
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      if (!damaged.has(actorId) && damaged.size < actorsMax) {
        damaged.add(actorId);
        found(damagedRecord('actor', actorId, 'the actor cannot be read, so its signatures were not checked'));
      }
      return null;
    }
  };
  return {
    document(actorId) {
      const document = known.get(actorId) ?? read(actorId);
      known.set(actorId, document);
      return document;
    },
  };
}

/** `findings` names each key whose start is not signed by the key before. `keys` null: they cannot be read. */
export async function storedAuthority(
  records: RecordStore,
): Promise<{ readonly keys: AuthorityKeys | null; readonly findings: readonly Finding[] }> {
  let stored: readonly AuthorityKeyRecord[];
  try {
    stored = await readAuthorityKeys(records);
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
    const detail = 'the keys of the authority cannot be read, so seals were not checked: give them by --authority';
    return { keys: null, findings: [damagedRecord('authority', 'keys', detail)] };
  }
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

function damagedRecord(kind: string, id: string, detail: string): Finding {
  return { ledgerId: null, seq: null, type: 'damaged_row', detail, table: 'record', key: `kind=${kind}, id=${id}` };
}

/** Says in words what is wrong with the start of a key. Returns null if the key before has signed it. */
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
