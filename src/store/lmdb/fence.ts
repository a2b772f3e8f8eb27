import { uuidFromBytes } from '../../domain/uuid.ts';
import type { Claim, Head } from '../ledger-store.ts';
import { unreadableRecord } from '../unreadable-record.ts';

/**
 * The version of a ledger's head record counts claims and events together: each takes it up by one. It never repeats,
 * so a write under the condition "the version is still this" is one onto the record that was read; and for one head,
 * another version means another claim.
 */

/** The version that a new claim writes over `version` (0: no head record yet). */
export function claimedVersion(version: number): number {
  return version + 1;
}

/** The version that stands beside `head` as long as the claim is the newest. NaN for a fence that no claim has. */
export function expectedVersion(claim: Claim, head: Head | null): number {
  if (!/^[1-9][0-9]{0,15}$/.test(claim.fence)) return Number.NaN;
  return Number(claim.fence) + (nextSeq(head) - nextSeq(claim.head));
}

export function fenceOf(version: number): string {
  return String(version);
}

/** A head record: seq and hash. */
export function formatHead(head: Head | null): string {
  return head === null ? NO_HEAD : `${head.seq} ${head.hash}`;
}

const NO_HEAD = '-';
const HEAD_FORM = /^(0|[1-9][0-9]{0,15}) ([0-9a-f]{64})$/;

/** null where the ledger was claimed and has no event yet. Throws UnreadableRecord for anything else that is no head. */
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
