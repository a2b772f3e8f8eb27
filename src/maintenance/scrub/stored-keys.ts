import type { ActorDocument, AuthorityKeys, KeySource } from '../../client/verify/key-source.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import { actorCollection } from '../../service/actors/actor-record.ts';
import { keyMessage } from '../../service/actors/actors.ts';
import { readAuthority } from '../../service/authority/authority.ts';
import { type AuthorityKeyRecord, authorityFingerprint, whyRefused } from '../../service/authority/key-list.ts';
import { readLog, whyNotEndorsed } from '../../service/log-identity/log-record.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { passOverDamaged, UnreadableRecord } from '../../store/unreadable-record.ts';
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

/** base64; with its name and dates if they are known too. */
type TrustedKey = Pick<AuthorityKeyRecord, 'publicKey'> &
  Partial<Pick<AuthorityKeyRecord, 'kid' | 'validFrom' | 'validTo'>>;

/**
 * The authority's keys from a store. `findings` names the record of the authority if its list is not believed, else the
 * record of the log if it has a key that the authority has not endorsed. `trusted` are keys of the authority that are
 * known from elsewhere: without any, only a list that contradicts itself is found. `keys` null: they cannot be read.
 */
export async function storedAuthority(
  records: RecordStore,
  trusted: readonly TrustedKey[],
): Promise<{ readonly keys: AuthorityKeys | null; readonly findings: readonly Finding[] }> {
  const stored = await passOverDamaged(readAuthority(records));
  if (stored === null) {
    const detail = 'the keys of the authority cannot be read, so seals were not checked: give them by --authority';
    return { keys: null, findings: [damagedRecord('authority', 'keys', detail)] };
  }
  const keys = stored.keys.map((key) => ({
    kid: key.kid,
    algorithm: 'Ed25519',
    publicKey: key.publicKey,
    fingerprint: authorityFingerprint(key),
    validFrom: key.validFrom,
    validTo: key.validTo,
  }));
  const publicKeys = trusted.map(({ publicKey }) => publicKey);
  const why = whyRefused(stored, publicKeys) ?? whyOther(stored.keys, trusted);
  if (why !== null) {
    const detail = `the list of the authority's keys is not believed, because ${why}`;
    return { keys, findings: [{ ...ofRecord('authority', 'keys'), type: 'invalid_authority_key', detail }] };
  }
  // The scrub of the records finds a damaged one.
  const log = (await passOverDamaged(readLog(records)))?.log ?? null;
  const detail = log === null ? null : whyNotEndorsed(log, stored.keys);
  if (detail === null) return { keys, findings: [] };
  return { keys, findings: [{ ...ofRecord('log', 'identity'), type: 'invalid_log_key', detail }] };
}

/**
 * Says what a trust anchor has otherwise than the list, as a clause. null: nothing. An anchor from before a rotation
 * lacks the end of a key.
 */
function whyOther(keys: readonly AuthorityKeyRecord[], trusted: readonly TrustedKey[]): string | null {
  for (const { publicKey, ...known } of trusted) {
    const key = keys.find((one) => one.publicKey === publicKey);
    if (key === undefined) continue;
    for (const field of ['kid', 'validFrom', 'validTo'] as const)
      if (known[field] !== undefined && known[field] !== null && known[field] !== key[field])
        return `${field} of the key with the fingerprint ${authorityFingerprint(key)} is ${key[field]}, and in the trust anchor ${known[field]}`;
  }
  return null;
}

function ofRecord(kind: string, id: string) {
  return { ledgerId: null, seq: null, table: 'record', key: `kind=${kind}, id=${id}` };
}

function damagedRecord(kind: string, id: string, detail: string): Finding {
  return { ...ofRecord(kind, id), type: 'damaged_row', detail };
}
