import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import type { Followed, Look, Receipt } from './history.ts';
import type { Violation } from './history-check.ts';

interface KnownOfLedger {
  readonly followed: readonly Followed[];
  readonly looks: readonly Look[];
  /** When the command of an event was sent first, by the seq of the event, where that is known. */
  readonly begunBySeq: ReadonlyMap<number, number>;
  readonly newestAcknowledged: number;
}

/**
 * Whether each follower was sent every acknowledged event once and in order, and none before it was durable: an event
 * that is not in the log, that a later read does not see, or whose command was not sent yet, was sent too early.
 */
export function followedViolations(log: readonly LedgerEvent[], known: KnownOfLedger): Violation[] {
  const latestLooks = lowestHeadsFrom(known.looks);
  return known.followed.flatMap((one) => [
    ...sequenceViolations(one, known.newestAcknowledged),
    ...one.receipts.flatMap((receipt) => earlyViolations(one.name, receipt, log, known.begunBySeq, latestLooks)),
  ]);
}

function sequenceViolations({ name, after, receipts }: Followed, newestAcknowledged: number): Violation[] {
  const found: Violation[] = [];
  let newest = after;
  for (const { seq } of receipts) {
    if (seq <= newest) found.push(`followed: ${name} was sent seq ${seq} again, behind seq ${newest}`);
    else if (seq > newest + 1) found.push(`followed: ${name} was sent seq ${seq} behind seq ${newest}`);
    newest = Math.max(newest, seq);
  }
  if (newest < newestAcknowledged)
    found.push(
      `followed: ${name} was sent no event behind seq ${newest}, and seq ${newestAcknowledged} is acknowledged`,
    );
  return found;
}

function earlyViolations(
  name: string,
  { seq, hash, at }: Receipt,
  log: readonly LedgerEvent[],
  begunBySeq: ReadonlyMap<number, number>,
  looks: readonly LowestHead[],
): Violation[] {
  const event = log[seq];
  if (event?.hash !== hash) return [`followed: ${name} was sent an event as seq ${seq} that is not in the log`];
  const begun = begunBySeq.get(seq);
  if (begun !== undefined && at < begun)
    return [`followed: ${name} was sent seq ${seq} too early: its command was sent later`];
  const look = firstBehind(looks, at);
  return look !== undefined && look.headSeq < seq
    ? [`followed: ${name} was sent seq ${seq} too early: a later read found the head at seq ${look.headSeq}`]
    : [];
}

interface LowestHead {
  readonly begun: number;
  /** The lowest head that this read or a later one found. */
  readonly headSeq: number;
}

/** By their beginnings. */
function lowestHeadsFrom(looks: readonly Look[]): LowestHead[] {
  let lowest = Number.POSITIVE_INFINITY;
  return looks
    .toSorted((one, other) => other.begun - one.begun)
    .map(({ begun, headSeq }) => {
      lowest = Math.min(lowest, headSeq);
      return { begun, headSeq: lowest };
    })
    .reverse();
}

/** The first read that began behind a place, by bisection. */
function firstBehind(looks: readonly LowestHead[], at: number): LowestHead | undefined {
  let [from, to] = [0, looks.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((looks[middle]?.begun ?? 0) > at) to = middle;
    else from = middle + 1;
  }
  return looks[from];
}
