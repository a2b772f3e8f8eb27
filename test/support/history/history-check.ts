import { LedgerError } from '../../../src/domain/errors.ts';
import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { checkChain } from '../../../src/domain/event/integrity.ts';
import { names } from '../../../src/domain/event/projection.ts';
import { type Command, commandMaster } from '../../../src/domain/ledger/command.ts';
import { decide } from '../../../src/domain/ledger/decide.ts';
import { followedViolations } from './followed-check.ts';
import type { Attempt, History, Look } from './history.ts';
import { Replay } from './replay.ts';

/** One way in which a history and the logs that it left contradict each other, in words. */
export type Violation = string;

/**
 * Checks everything that clients were told against the log of one ledger, whole and in order of its seqs (with what
 * stands there twice): one hash per seq, every acknowledged command in it exactly once, nothing of what was refused,
 * the order in which things were told, each refusal by the state of some moment while it was asked for, what followers
 * were sent, the chain by its hashes.
 */
export function checkHistory(ledgerId: string, log: readonly LedgerEvent[], history: History): Violation[] {
  const attempts = history.attempts.filter(({ command }) => command.ledgerId === ledgerId);
  const chain = chainViolations(log);
  // What follows asks for a log that can be replayed.
  if (chain.length > 0) return chain;
  const written = new Written(log);
  const replay = new Replay(log);
  const looks = history.looks.filter((look) => look.ledgerId === ledgerId);
  return [
    ...ruleViolations(attempts, written, replay),
    ...acknowledgedViolations(attempts, written),
    ...twiceOrRefusedViolations(attempts, written),
    ...forgottenViolations(attempts, written),
    ...orderViolations(attempts),
    ...laneViolations(attempts, written, replay),
    ...refusalViolations(attempts, replay),
    ...lookViolations(attempts, looks),
    ...followedViolations(log, {
      followed: (history.followed ?? []).filter((one) => one.ledgerId === ledgerId),
      looks,
      begunBySeq: begunBySeq(attempts, written),
      newestAcknowledged: new Acknowledged(attempts).newestBefore(Number.POSITIVE_INFINITY),
    }),
  ];
}

function chainViolations(log: readonly LedgerEvent[]): Violation[] {
  const found = checkChain(log, { kind: 'ledger', before: null }).map(
    ({ type, detail }) => `chain: ${type}, ${detail}`,
  );
  const bySeq = new Map<number, string>();
  for (const { seq, hash } of log) {
    const other = bySeq.get(seq);
    if (other !== undefined && other !== hash) found.push(`fork: two hashes at seq ${seq}`);
    bySeq.set(seq, hash);
  }
  const masters = Map.groupBy(log, ({ master }) => master?.id ?? '');
  for (const [masterId, events] of masters)
    if (masterId !== '')
      for (const issue of checkChain(events, { kind: 'master', before: null }))
        found.push(`chain of master ${masterId}: ${issue.type}, ${issue.detail}`);
  return found;
}

/** Events by what names the command that they came from. */
class Written {
  readonly #byName = new Map<string, LedgerEvent[]>();
  readonly byId = new Map<string, LedgerEvent>();

  constructor(log: readonly LedgerEvent[]) {
    for (const event of log) {
      this.byId.set(event.id, event);
      const given = new Set(event.commands.map(({ id }) => `mark ${id}`));
      if (event.eventType === appendedType) given.add(`payload ${event.payload}`);
      for (const name of given) this.#byName.set(name, [...(this.#byName.get(name) ?? []), event]);
    }
  }

  of(command: Command): readonly LedgerEvent[] {
    const name = command.kind === 'append_event' ? `payload ${command.payload}` : `mark ${command.commandKeys[0]?.id}`;
    return this.#byName.get(name) ?? [];
  }
}

/** The type of all events that clients append whose history is checked; each has a payload of its own. */
export const appendedType = 'SHIPMENT_DISPATCHED';

/** Opening a ledger again finds it open; its events carry no name. */
function isOpening({ command }: Attempt): boolean {
  return command.kind === 'open_ledger';
}

/** By the log alone: whatever stands there was allowed at its place. */
function ruleViolations(attempts: readonly Attempt[], written: Written, replay: Replay): Violation[] {
  const found: Violation[] = [];
  for (const [name, [attempt]] of Map.groupBy(attempts, (one) => one.name)) {
    if (attempt === undefined || isOpening(attempt)) continue;
    for (const event of written.of(attempt.command)) {
      const code = refusalAt(attempt.command, replay, event.seq - 1, event.createdAt);
      if (code !== null) found.push(`rules: ${name} stands at seq ${event.seq}, where it was ${code}`);
    }
  }
  return found;
}

function acknowledgedViolations(attempts: readonly Attempt[], written: Written): Violation[] {
  const found: Violation[] = [];
  for (const attempt of attempts) {
    const { name, command, result } = attempt;
    if (result.kind !== 'written') continue;
    const { event } = result.outcome;
    const stored = written.byId.get(event.id);
    if (stored === undefined) found.push(`lost: ${name} was acknowledged at seq ${event.seq} and is not there`);
    else if (stored.hash !== event.hash || stored.seq !== event.seq)
      found.push(`changed: ${name} was acknowledged as another event than stands at seq ${event.seq}`);
    else if (!isOpening(attempt) && !written.of(command).some(({ id }) => id === event.id))
      found.push(`another's: ${name} was acknowledged as seq ${event.seq}, which is not of that command`);
  }
  return found;
}

function twiceOrRefusedViolations(attempts: readonly Attempt[], written: Written): Violation[] {
  const found: Violation[] = [];
  for (const [name, all] of Map.groupBy(attempts, (one) => one.name)) {
    const [first] = all;
    if (first === undefined || isOpening(first)) continue;
    const events = written.of(first.command);
    const seqs = events.map(({ seq }) => seq).join(', ');
    if (events.length > 1) found.push(`twice: ${name} stands at seqs ${seqs}`);
    const mayStand = all.some(({ result }) => result.kind === 'written' || result.kind === 'unknown');
    if (events.length > 0 && !mayStand) {
      const codes = all.map(({ result }) => ('code' in result ? result.code : result.kind)).join(', ');
      found.push(`refused but there: ${name} (${codes}) stands at seq ${seqs}`);
    }
  }
  return found;
}

/** Who asks again by the same key for what stands there is told of it, whatever the rules say by then. */
function forgottenViolations(attempts: readonly Attempt[], written: Written): Violation[] {
  const found: Violation[] = [];
  const acknowledged = new Acknowledged(attempts);
  for (const { name, command, begun, result } of attempts) {
    if (result.kind !== 'refused' || command.commandKeys.length === 0) continue;
    const [event] = written.of(command);
    // Where a later one was acknowledged, it stood.
    if (event !== undefined && event.seq <= acknowledged.newestBefore(begun))
      found.push(`forgotten: ${name} was told ${result.code}, and stood at seq ${event.seq} when that was asked for`);
  }
  return found;
}

/** Whatever was acknowledged before something else was begun stands before it. */
function orderViolations(attempts: readonly Attempt[]): Violation[] {
  const found: Violation[] = [];
  const acknowledged = new Acknowledged(attempts);
  for (const { name, result } of attempts) {
    if (result.kind !== 'written') continue;
    const before = acknowledged.newestBefore(acknowledged.firstBegun(name));
    if (result.outcome.event.seq <= before)
      found.push(
        `order: ${name} stands at seq ${result.outcome.event.seq}, and was begun when seq ${before} was acknowledged`,
      );
  }
  return found;
}

/** What does not stand of a lane, and the seq of what stands before it there; -1: nothing does. */
interface LaneGap {
  readonly tries: readonly Attempt[];
  readonly after: number;
}

/**
 * Commands of a lane stand in their order, and none behind one that was to be sent again: one that does not stand was
 * refused, and nothing behind it was told as written before it was sent that time. The refusal may have been lost on
 * its way (docs/architecture.md): then the caller was told that the outcome is unknown, had
 * sent what is behind it by then, and the log says that it was refused at some moment between what stands before it in
 * the lane and what stands behind.
 */
function laneViolations(attempts: readonly Attempt[], written: Written, replay: Replay): Violation[] {
  const found: Violation[] = [];
  const acknowledged = new Acknowledged(attempts);
  /** `behind`: the tries of what was written behind it, at `beforeSeq`. */
  const wasRefusedUnheard = ({ tries, after }: LaneGap, behind: readonly Attempt[], beforeSeq: number) =>
    tries.some(({ command, begun, ended, result }) => {
      const wereUnderWay = behind.some((one) => one.begun < (ended ?? Number.POSITIVE_INFINITY));
      if (result.kind !== 'unknown' || !wereUnderWay) return false;
      for (let seq = Math.max(0, after, acknowledged.newestBefore(begun)); seq < beforeSeq; seq++)
        if (refusalAt(command, replay, seq, replay.timeAt(seq)) !== null) return true;
      return false;
    });
  const inLanes = attempts.filter(({ command }) => command.lane);
  for (const [lane, all] of Map.groupBy(inLanes, ({ command }) => command.lane?.id ?? '')) {
    const commands = [...Map.groupBy(all, ({ command }) => command.lane?.index ?? 0)].sort(([a], [b]) => a - b);
    let last = -1;
    let gaps: LaneGap[] = [];
    /** When the last of those before was decided against. */
    let refused = { name: '', begun: -1 };
    for (const [, tries] of commands) {
      const [first] = tries;
      if (first === undefined) continue;
      const { name, command } = first;
      const event = written.of(command)[0];
      if (event === undefined) {
        const refusal = tries.find(({ result }) => result.kind === 'refused');
        if (refusal === undefined) gaps.push({ tries, after: last });
        else if (refusal.begun > refused.begun) refused = refusal;
        continue;
      }
      const answeredAt = Math.min(
        ...tries.map(({ result, ended }) => (result.kind === 'written' ? (ended ?? Infinity) : Infinity)),
      );
      if (event.seq < last) found.push(`lane ${lane}: ${name} stands before the one that it followed`);
      const gap = gaps.find((one) => !wasRefusedUnheard(one, tries, event.seq))?.tries[0];
      if (gap !== undefined) found.push(`lane ${lane}: ${name} stands, and ${gap.name} before it does not`);
      gaps = [];
      if (answeredAt < refused.begun)
        found.push(`lane ${lane}: ${name} stood when ${refused.name} before it was sent again`);
      last = event.seq;
    }
  }
  return found;
}

/** A refusal is true of the ledger at some moment between the question and the answer. */
function refusalViolations(attempts: readonly Attempt[], replay: Replay): Violation[] {
  const found: Violation[] = [];
  const acknowledged = new Acknowledged(attempts);
  for (const { name, command, begun, ended, result } of attempts) {
    if (result.kind !== 'refused') continue;
    const from = acknowledged.newestBefore(begun);
    const to = acknowledged.oldestBegunAfter(ended ?? Number.POSITIVE_INFINITY) ?? replay.headSeq + 1;
    let isTrue = false;
    for (let seq = from; seq < Math.max(to, from + 1) && seq <= replay.headSeq && !isTrue; seq++)
      isTrue = refusalAt(command, replay, seq, replay.timeAt(seq)) === result.code;
    if (!isTrue) found.push(`false refusal: ${name} was told ${result.code}, which was not so from seq ${from} on`);
  }
  return found;
}

/** Reads see whatever was acknowledged before them, and what follows from it. */
function lookViolations(attempts: readonly Attempt[], looks: readonly Look[]): Violation[] {
  const found: Violation[] = [];
  const acknowledged = new Acknowledged(attempts);
  for (const { begun, scope, seqs, headSeq } of looks) {
    if (headSeq < acknowledged.newestBefore(begun))
      found.push(
        `stale read: the head was seq ${headSeq} when seq ${acknowledged.newestBefore(begun)} was acknowledged`,
      );
    const seen = new Set(seqs);
    for (const { result, ended } of attempts) {
      if (result.kind !== 'written' || ended === null || ended > begun) continue;
      const { event } = result.outcome;
      const own = event.master === null ? names.ownEvents(event.ledgerId) : names.masterEvents(event.master.id);
      if (own === scope && !seen.has(event.seq)) found.push(`stale read: seq ${event.seq} is missing under ${scope}`);
    }
  }
  return found;
}

/** When the command of each event was sent first, by the seq of the event. */
function begunBySeq(attempts: readonly Attempt[], written: Written): Map<number, number> {
  const begun = new Map<number, number>();
  for (const { command, begun: at } of attempts)
    for (const { seq } of written.of(command)) begun.set(seq, Math.min(at, begun.get(seq) ?? at));
  return begun;
}

function refusalAt(command: Command, replay: Replay, seq: number, at: string): string | null {
  const masterId = commandMaster(command);
  try {
    decide(replay.ledgerAt(seq), masterId === null ? null : replay.masterAt(masterId, seq), command, at);
    return null;
  } catch (error) {
    if (error instanceof LedgerError) return error.code;
    throw error;
  }
}

/** When which seqs were acknowledged, in the one order of all beginnings and ends. */
class Acknowledged {
  /** By their ends; seq is the newest up to there. */
  readonly #ends: { readonly at: number; readonly seq: number }[] = [];
  /** By their beginnings, latest first; seq is the oldest from there on. */
  readonly #beginnings: { readonly at: number; readonly seq: number }[] = [];
  /** When a command was sent first. */
  readonly #firstBegun = new Map<string, number>();

  constructor(attempts: readonly Attempt[]) {
    const ended: { at: number; seq: number }[] = [];
    const begun: { at: number; seq: number }[] = [];
    for (const { name, begun: from } of attempts)
      this.#firstBegun.set(name, Math.min(from, this.#firstBegun.get(name) ?? from));
    for (const { name, result, ended: to } of attempts) {
      if (result.kind !== 'written') continue;
      const { seq } = result.outcome.event;
      if (to !== null) ended.push({ at: to, seq });
      begun.push({ at: this.firstBegun(name), seq });
    }
    let newest = -1;
    for (const { at, seq } of ended.sort((a, b) => a.at - b.at)) {
      newest = Math.max(newest, seq);
      this.#ends.push({ at, seq: newest });
    }
    let oldest = Number.POSITIVE_INFINITY;
    for (const { at, seq } of begun.sort((a, b) => b.at - a.at)) {
      oldest = Math.min(oldest, seq);
      this.#beginnings.push({ at, seq: oldest });
    }
  }

  firstBegun(name: string): number {
    return this.#firstBegun.get(name) ?? 0;
  }

  newestBefore(at: number): number {
    return this.#ends[countWhile(this.#ends, (one) => one.at < at) - 1]?.seq ?? -1;
  }

  oldestBegunAfter(at: number): number | null {
    return this.#beginnings[countWhile(this.#beginnings, (one) => one.at > at) - 1]?.seq ?? null;
  }
}

/** How many items from the first on have what no later one has again, by bisection: histories may be long. */
function countWhile<T>(items: readonly T[], has: (item: T) => boolean): number {
  let [from, to] = [0, items.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    const item = items[middle];
    if (item !== undefined && has(item)) from = middle + 1;
    else to = middle;
  }
  return from;
}
