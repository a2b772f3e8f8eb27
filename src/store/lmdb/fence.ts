import type { Claim, Head } from '../ledger-store.ts';

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
  return head === null ? '-' : `${head.seq} ${head.hash}`;
}

/** null where the ledger was claimed and has no event yet. */
export function parseHead(text: string): Head | null {
  const at = text.indexOf(' ');
  return at < 0 ? null : { seq: Number(text.slice(0, at)), hash: text.slice(at + 1) };
}

function nextSeq(head: Head | null): number {
  return head === null ? 0 : head.seq + 1;
}
