import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { forwardingLedgers } from '../../store/forwarding.ts';
import type { LedgerStore, Snapshot } from '../../store/ledger-store.ts';

/** Why a snapshot is not used. `unsealed`: it was written before snapshots were sealed, or without the key. */
export type SnapshotFault = 'unsealed' | 'wrong_seal';

/** Prefix of the stored text, before the seal and the state. */
const format = 'sealed1';

/**
 * A store whose snapshots are sealed with an HMAC (SHA-256), under a key that is derived from the secrets key. The seal
 * covers all of the snapshot, and its owner (a ledger or a master id). A snapshot with a wrong seal, or none, is
 * ignored: the state is rebuilt from the log. `refused` is called for each.
 */
export function sealedSnapshots(
  store: LedgerStore,
  secretsKey: Uint8Array,
  refused: (owner: string, fault: SnapshotFault) => void,
): LedgerStore {
  const key = Buffer.from(hkdfSync('sha256', secretsKey, '', 'svc-snapshot-seal-v1', 32));
  const sealOf = (owner: string, { foldVersion, seq, hash, state }: Snapshot): Buffer =>
    createHmac('sha256', key)
      .update(JSON.stringify([owner, foldVersion, seq, hash, state]))
      .digest();
  return {
    ...forwardingLedgers(store),
    snapshot: async (owner) => {
      const stored = await store.snapshot(owner);
      if (stored === null) return null;
      const parts = partsOf(stored.state);
      if (parts === null) refused(owner, 'unsealed');
      else if (isSame(parts.seal, sealOf(owner, { ...stored, state: parts.state })))
        return { ...stored, state: parts.state };
      else refused(owner, 'wrong_seal');
      return null;
    },
    saveSnapshot: (owner, snapshot) => {
      const seal = sealOf(owner, snapshot).toString('base64');
      return store.saveSnapshot(owner, { ...snapshot, state: `${format} ${seal} ${snapshot.state}` });
    },
  };
}

/** The state in a stored snapshot, whether or not its seal is right. */
export function stateInSnapshot(stored: string): string {
  return partsOf(stored)?.state ?? stored;
}

function partsOf(stored: string): { readonly seal: Buffer; readonly state: string } | null {
  const [, seal, state] = /^sealed1 ([A-Za-z0-9+/=]{1,64}) (.*)$/s.exec(stored) ?? [];
  return seal === undefined || state === undefined ? null : { seal: Buffer.from(seal, 'base64'), state };
}

function isSame(seal: Buffer, expected: Buffer): boolean {
  return seal.length === expected.length && timingSafeEqual(seal, expected);
}
