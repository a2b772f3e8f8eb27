import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { forwardingLedgers } from '../store/forwarding.ts';
import type { LedgerStore, Snapshot } from '../store/ledger-store.ts';

/** Why a snapshot is not used. `unsealed`: it is older than seals, or somebody wrote it who has no key. */
export type SnapshotFault = 'unsealed' | 'wrong_seal';

/** Stands before the seal and the state in what is stored. */
const format = 'sealed1';

/**
 * A store whose snapshots are sealed: an HMAC (SHA-256) under a key that is derived from the secrets key, over the owner (a ledger or a
 * master, whose ids are the service's own), the fold version, the place and the content. A snapshot with another seal, or none, is no
 * snapshot: the state is rebuilt from the log. `refused` is told of each.
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
      const fault = faultOf(parts, parts === null ? null : sealOf(owner, { ...stored, state: parts.state }));
      if (fault === null && parts !== null) return { ...stored, state: parts.state };
      refused(owner, fault ?? 'unsealed');
      return null;
    },
    saveSnapshot: (owner, snapshot) => {
      const seal = sealOf(owner, snapshot).toString('base64');
      return store.saveSnapshot(owner, { ...snapshot, state: `${format} ${seal} ${snapshot.state}` });
    },
  };
}

/** The state in what is stored of a snapshot, whether its seal is right or not. */
export function stateInSnapshot(stored: string): string {
  return partsOf(stored)?.state ?? stored;
}

function partsOf(stored: string): { readonly seal: Buffer; readonly state: string } | null {
  const [, seal, state] = /^sealed1 ([A-Za-z0-9+/=]{1,64}) (.*)$/s.exec(stored) ?? [];
  return seal === undefined || state === undefined ? null : { seal: Buffer.from(seal, 'base64'), state };
}

function faultOf(parts: { readonly seal: Buffer } | null, expected: Buffer | null): SnapshotFault | null {
  if (parts === null || expected === null) return 'unsealed';
  const isRight = parts.seal.length === expected.length && timingSafeEqual(parts.seal, expected);
  return isRight ? null : 'wrong_seal';
}
