import { uuidFromBytes } from '../../../domain/values/uuid.ts';
import type { Claim, Head } from '../../ledger-store.ts';
import { unreadableRecord } from '../../unreadable-record.ts';

/**
 * The version of a ledger's head record is the number of claims plus the number of events. It never repeats. So a write
 * that is conditional on the version replaces exactly the record that was read, and two different versions with the
 * same head belong to different claims.
 */

/** Returns the version that a new claim writes over `version`. `version` is 0 if there is no head record yet. */
export function claimedVersion(version: number): number {
  return version + 1;
}

/**
 * Returns the version of the head record while `claim` is the newest one and the head is `head`. NaN for an invalid
 * fence.
 */
export function expectedVersion(claim: Claim, head: Head | null): number {
  if (!/^[1-9][0-9]{0,15}$/.test(claim.fence)) return Number.NaN;
  return Number(claim.fence) + (nextSeq(head) - nextSeq(claim.head));
}

export function fenceOf(version: number): string {
  return String(version);
}

/** Returns the stored text of a head: seq and hash. */
export function formatHead(head: Head | null): string {
  return head === null ? NO_HEAD : `${head.seq} ${head.hash}`;
}

const NO_HEAD = '-';
const HEAD_FORM = /^(0|[1-9][0-9]{0,15}) ([0-9a-f]{64})$/;

/** Parses what formatHead returned. null if the ledger has no event. Throws UnreadableRecord for any other text. */
export function parseHead(ledgerKey: Uint8Array, text: string): Head | null {
  if (text === NO_HEAD) return null;
  const [, seq, hash = ''] = HEAD_FORM.exec(text) ?? [];
  if (seq === undefined)
    throw unreadableRecord('head', uuidFromBytes(ledgerKey), 'where the ledger ends cannot be read');
  return { seq: Number(seq), hash };
}

function nextSeq(head: Head | null): number {
  return head === null ? 0 : head.seq + 1;
}
