import type { Claim, Head } from '../ledger-store.ts';

/**
 * The version of a ledger's head record, a number that only grows: a claim takes it up to the next multiple of
 * `claimStep`, an event by one. So a version stands for one claim and one head, a claim and a head give the version that
 * must stand there, and one comparison inside the write transaction decides whether both still do. A claim after which
 * more than `claimStep` events were appended merely runs into the numbers of claims that are never given out.
 *
 * 2^53 / 2^24: half a thousand million claims of one ledger.
 */
const claimStep = 2 ** 24;

/** The version that a new claim writes over `version` (0: no head record yet). */
export function claimedVersion(version: number): number {
  const next = (Math.floor(version / claimStep) + 1) * claimStep;
  if (!Number.isSafeInteger(next)) throw new RangeError('The ledger was claimed too often');
  return next;
}

/** The version that stands in the head record as long as the claim is the newest and `head` the head. NaN for a fence that no claim has. */
export function expectedVersion(claim: Claim, head: Head | null): number {
  if (!/^[1-9][0-9]{0,15}$/.test(claim.fence)) return Number.NaN;
  return Number(claim.fence) + (nextSeq(head) - nextSeq(claim.head));
}

export function fenceOf(version: number): string {
  return String(version);
}

/** seq of the event that comes next. */
export function nextSeq(head: Head | null): number {
  return head === null ? 0 : head.seq + 1;
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
