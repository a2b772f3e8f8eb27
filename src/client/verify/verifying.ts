import { contentHash, contentJson, eventHash } from '../../domain/event/content.ts';
import { missingEvents } from '../../domain/event/integrity.ts';
import { shownName } from '../../domain/event/shown-name.ts';
import { areTextsTooLong } from '../../domain/event/text-size.ts';
import { DecisionCheck } from '../../domain/ledger/decision-check.ts';
import { isoTime } from '../../domain/values/time.ts';
import { type Event, eventContent, ledgerEvent, type ReadEvent, readEvent } from '../event.ts';
import type { JsonObject } from '../shapes.ts';
import { CheckpointChecks } from './checkpoint-check.ts';
import { SignedOrder } from './signed-order.ts';
import {
  type IncompleteReason,
  type IncompleteType,
  malformed,
  type Verification,
  type VerificationIssue,
  type VerificationIssueType,
} from './verification.ts';
import type { VerifyOptions } from './verify-options.ts';
import { isCallerType, payloadFaults } from './verify-payload.ts';
import { createSignatureCheck, type SignatureCheck } from './verify-signature.ts';

export type { TrustedKeys, VerifyOptions } from './verify-options.ts';

/** Milliseconds by which the verifier's clock may be behind the service's clock. */
export const CLOCK_BEHIND_MAX_MS = 3_600_000;

/** Issues of events that are kept. Further ones are only counted: a forged list may have millions. */
export const ISSUES_MAX = 10_000;

/**
 * Verifies events without trusting their source (docs/verifying.md). It rebuilds contents from the fields shown,
 * recomputes hashes and chains, checks signatures and seals, and decides each event again from the events before it.
 * Accepts lists of any length. Rejects only with what `events` or `options.keys` throws.
 */
export async function verifyEvents(
  events: Iterable<Event> | AsyncIterable<Event>,
  options: VerifyOptions,
): Promise<Verification> {
  const verifier = new EventVerifier(options);
  const kept: VerificationIssue[] = [];
  let count = 0;
  for await (const event of events) {
    const { issues } = await verifier.take(event);
    count += issues.length;
    for (const issue of issues) if (kept.length < ISSUES_MAX) kept.push(issue);
  }
  return verifier.verification(kept, count);
}

/** What was recomputed or verified of one event, and found good. */
export interface EventChecks {
  /** The content hash, from the fields that are shown and the event before it in its master. */
  readonly contentHash: boolean;
  /** The chain hash, from the content hash and the event before it in the ledger. */
  readonly chainHash: boolean;
  /** The signature of the actor. false also where the event has none. */
  readonly actorSignature: boolean;
  /** The seal of the authority, if both hashes are good too: else it covers nothing that is shown. */
  readonly authoritySeal: boolean;
}

interface EventFindings {
  readonly issues: readonly VerificationIssue[];
  readonly checks: EventChecks;
}

interface MasterHead {
  readonly seq: number;
  readonly ledgerSeq: number;
  readonly contentHash: string;
  /** Payload of the master's TRACELEDGER_MASTER_CREATED. null if that event is not in the list. */
  readonly created: JsonObject | null;
}

const unsealed = ', so no seal covers what the event says';

/** Verifies the events of one list, one after the other. */
export class EventVerifier {
  readonly #options: VerifyOptions;
  readonly #checkSignature: SignatureCheck;
  /** Of the event at hand. */
  #issues: VerificationIssue[] = [];
  /** Whether the event at hand has a seal that verifies over the `hash` that it shows. */
  #isSealed = false;
  readonly #incomplete = new Map<IncompleteType, { detail: string; eventId: string; count: number }>();
  readonly #checked = { events: 0, contentHashes: 0, chainHashes: 0, actorSignatures: 0, authoritySeals: 0 };
  readonly #masters = new Map<string, MasterHead>();
  readonly #wanted: Set<string>;
  #ledgerId: string | null;
  #masterId: string | null;
  #previous: Event | null = null;
  #genesis: JsonObject | null = null;
  readonly #extent: 'all' | 'run' | 'some';
  readonly #decisions: DecisionCheck;
  readonly #trusted: { readonly actor: boolean; readonly authority: boolean };
  readonly #checkpoints: CheckpointChecks;
  readonly #order = new SignedOrder();
  /** No event of the ledger is missing from this seq up to the current one. */
  #runStart = 0;

  constructor(
    options: VerifyOptions,
    checkSignature: SignatureCheck = createSignatureCheck(options.keys, options.authorityKeys ?? null),
  ) {
    this.#options = options;
    this.#extent = options.extent ?? (options.kind === 'segment' ? 'some' : 'run');
    this.#checkSignature = checkSignature;
    const { latest } = options;
    this.#decisions = new DecisionCheck({ latest: () => latest ?? isoTime(Date.now() + CLOCK_BEHIND_MAX_MS) });
    const trusted = options.trustedKeys ?? (options.keys.isResolver === true ? 'actors' : 'none');
    this.#trusted = { actor: /^(all|actors)$/.test(trusted), authority: /^(all|authority)$/.test(trusted) };
    this.#wanted = new Set(options.mustContain);
    this.#checkpoints = new CheckpointChecks([options.checkpoint ?? []].flat());
    this.#ledgerId = options.ledgerId ?? null;
    this.#masterId = options.masterId ?? null;
  }

  /** Takes the next event of the list. Rejects with what the keys throw; the event then was not taken. */
  async take(event: Event): Promise<EventFindings> {
    const before = { ...this.#checked };
    this.#issues = [];
    this.#isSealed = false;
    await this.#take(event);
    const { contentHashes, chainHashes, actorSignatures } = this.#checked;
    const contentHash = contentHashes > before.contentHashes;
    const chainHash = chainHashes > before.chainHashes;
    const actorSignature = actorSignatures > before.actorSignatures;
    // A true seal with its hash can be copied to any content.
    const authoritySeal = this.#isSealed && contentHash && chainHash;
    if (authoritySeal) this.#checked.authoritySeals += 1;
    this.#order.take(event, this.#isSealed && chainHash);
    return { issues: this.#issues, checks: { contentHash, chainHash, actorSignature, authoritySeal } };
  }

  /** `master_seq` of the newest event of a master that is known. null: none is. */
  masterSeqOf(masterId: string): number | null {
    return this.#masters.get(masterId)?.seq ?? null;
  }

  /** Whether the content of the next event can be recomputed only with the event before it in its master. */
  lacksMasterOf({ masterId, masterSeq, seq }: Event): boolean {
    if (masterId === null || masterSeq === null || masterSeq === 0 || this.#masters.has(masterId)) return false;
    const isWhole = this.#runStart === 0 && seq === (this.#previous?.seq ?? -1) + 1;
    return !isWhole;
  }

  /** Notes the newest event of a master that stands before the list, or in a gap of it. */
  learnMaster({ masterId, masterSeq, seq, contentHash }: Event): void {
    if (masterId === null || masterSeq === null) return;
    this.#masters.set(masterId, { seq: masterSeq, ledgerSeq: seq, contentHash, created: null });
  }

  async #take(event: Event): Promise<void> {
    const read = this.#read(event);
    if (read === null) {
      this.#checked.events += 1;
      return;
    }
    // Only this look waits, and may throw: what stands below it happens once.
    const signatures = await this.#checkSignature(read);
    this.#checked.events += 1;
    this.#checkpoints.take(event);
    this.#checkSubject(event);
    this.#checkPlace(event);
    const master = event.masterId === null ? null : (this.#masters.get(event.masterId) ?? null);
    this.#checkContent(read, master);
    this.#checkHash(event);
    for (const fault of payloadFaults(event, { ledger: this.#genesis, master: master?.created ?? null })) {
      this.#issue(event, 'contradiction', fault);
    }
    this.#noteSignatures(read, signatures);
    this.#checkDecision(read, this.#issues.length > 0);
    this.#advance(event, master);
  }

  /** The result so far. `found`: the issues of the events that were taken, as far as they were kept, of `count`. */
  verification(found: readonly VerificationIssue[], count = found.length): Verification {
    const issues = [...found];
    const last = this.#previous;
    for (const hash of this.#wanted) {
      issues.push({ eventId: last?.id ?? '', type: 'missing_event', detail: `no event has the hash ${hash}` });
    }
    const eventId = last?.id ?? '';
    const incomplete: IncompleteReason[] = [...this.#incomplete].map(([type, reason]) => ({ type, ...reason }));
    for (const { type, detail } of this.#checkpoints.findings(this.#extent === 'all')) {
      if (type === 'checkpoint_unchecked') incomplete.push({ type, detail, eventId, count: 0 });
      else issues.push({ eventId, type, detail });
    }
    const unsigned = this.#order.finding(this.#checkpoints.uncovered());
    if (unsigned !== null) incomplete.push(unsigned);
    // A source that holds everything back must not pass for complete.
    if (this.#checked.events === 0)
      incomplete.push({ type: 'start_unknown', detail: 'there is no event', eventId: '', count: 0 });
    const verdict = issues.length > 0 ? 'invalid' : incomplete.length > 0 ? 'incomplete' : 'valid';
    const checkpoints = this.#checkpoints.coverage();
    return {
      verdict,
      verified: verdict === 'valid',
      issues,
      issueCount: count + issues.length - found.length,
      incomplete,
      checked: { ...this.#checked },
      ledgerId: this.#ledgerId,
      masterId: this.#masterId,
      checkpoint: checkpoints[0] ?? null,
      checkpoints,
      head: last === null ? null : { seq: last.seq, hash: last.hash },
    };
  }

  #issue(event: Event, type: VerificationIssueType, detail: string): void {
    // The id of a malformed event may be any text.
    this.#issues.push({ eventId: shownName(event.id), type, detail });
  }

  #unchecked(event: Event, type: IncompleteType, detail: string): void {
    const known = this.#incomplete.get(type);
    if (known === undefined) this.#incomplete.set(type, { detail, eventId: event.id, count: 1 });
    else known.count += 1;
  }

  /** Returns null and reports an issue if the fields of the event are malformed. */
  #read(event: Event): ReadEvent | null {
    const wrong = malformed(event);
    if (wrong !== null) {
      this.#issue(event, 'malformed_event', wrong);
      return null;
    }
    let read: ReadEvent;
    try {
      read = readEvent(event);
    } catch {
      this.#issue(event, 'malformed_event', 'a payload holds what JSON cannot say');
      return null;
    }
    // Grants from before permissions had a bound may be longer.
    const isTooLong = areTextsTooLong(read.payload, read.actorSigPayload);
    if (!isTooLong || !isCallerType(event.eventType)) return read;
    this.#issue(event, 'malformed_event', 'its payload, with what was signed, is longer than the service records');
    return null;
  }

  /** Checks that all events are of one ledger, and of one master if they should be. */
  #checkSubject(event: Event): void {
    const { ledgerId, masterId } = event;
    this.#ledgerId ??= ledgerId;
    if (ledgerId !== this.#ledgerId)
      this.#issue(event, 'broken_link', `the event is one of another ledger, ${ledgerId}`);
    if (this.#options.kind === 'master') this.#masterId ??= masterId;
    else if (this.#masterId === null) return;
    if (masterId === null) this.#issue(event, 'broken_link', 'the event is one of no master');
    else if (masterId !== this.#masterId)
      this.#issue(event, 'broken_link', `the event is one of another master, ${masterId}`);
  }

  /** Checks where the list begins, and its order and gaps in the ledger. */
  #checkPlace(event: Event): void {
    const previous = this.#previous;
    const { kind } = this.#options;
    if (previous === null) {
      this.#runStart = event.seq;
      const begins = kind === 'master' ? event.masterSeq === 0 : event.seq === 0;
      const begin = `the list begins at seq ${event.seq}, and what stands before is`;
      if (!begins && this.#extent === 'all') this.#issue(event, 'missing_event', `${begin} missing`);
      else if (!begins) this.#unchecked(event, 'start_unknown', `${begin} not known`);
      return;
    }
    if (event.createdAt < previous.createdAt)
      this.#issue(event, 'broken_link', 'the event is dated before the one before it');
    if (event.seq <= previous.seq) {
      this.#issue(event, 'broken_link', 'the event stands behind one that has its seq or a later one');
    } else if (event.seq > previous.seq + 1) {
      this.#runStart = event.seq;
      const gap = `${missingEvents(event.seq - previous.seq - 1)} before seq ${event.seq}`;
      if (kind !== 'master') this.#gap(event, gap);
    }
  }

  #gap(event: Event, detail: string): void {
    if (this.#extent === 'some') this.#unchecked(event, 'middle_unknown', `${detail}: a segment, or left out`);
    else this.#issue(event, 'missing_event', detail);
  }

  /** Recomputes the content hash. Checks order and gaps in the master. */
  #checkContent(read: ReadEvent, master: MasterHead | null): void {
    const { event } = read;
    let masterPrevHash = '';
    const unknown = `the event before it in its master is not in the list${unsealed}`;
    if (event.masterId !== null && event.masterSeq !== null && event.masterSeq > 0) {
      if (master === null) {
        const missing = 'the events that the master begins with are missing';
        if (this.#runStart === 0) this.#issue(event, 'missing_event', missing);
        else this.#unchecked(event, 'content_unchecked', unknown);
        return;
      }
      if (event.masterSeq <= master.seq) {
        const detail = 'the event stands behind one of its master that has its master_seq or a later one';
        this.#issue(event, 'broken_link', detail);
        return;
      }
      if (event.masterSeq > master.seq + 1) {
        const missing = missingEvents(event.masterSeq - master.seq - 1, ' of the master');
        const gap = `${missing} before master_seq ${event.masterSeq}`;
        // If no event of the ledger is missing in between, none of the master was left out.
        if (this.#extent !== 'some' || master.ledgerSeq >= this.#runStart) this.#issue(event, 'missing_event', gap);
        else {
          this.#unchecked(event, 'content_unchecked', unknown);
          if (this.#options.kind === 'master') this.#gap(event, gap);
        }
        return;
      }
      masterPrevHash = master.contentHash;
    } else if (master !== null && event.masterSeq === 0) {
      this.#issue(event, 'broken_link', 'the master begins a second time');
    }
    const recomputed = contentHash(contentJson(eventContent(read, masterPrevHash)));
    if (recomputed === event.contentHash) this.#checked.contentHashes += 1;
    else this.#issue(event, 'hash_mismatch', 'content_hash does not match the one recomputed from the fields');
  }

  #checkHash(event: Event): void {
    const previous = this.#previous;
    const before = event.seq === 0 ? '' : previous?.seq === event.seq - 1 ? previous.hash : null;
    if (before === null) {
      this.#unchecked(event, 'hash_unchecked', `the event before it in the ledger is not in the list${unsealed}`);
    } else if (eventHash(before, event.contentHash) === event.hash) this.#checked.chainHashes += 1;
    else {
      const detail = 'hash does not match the one recomputed from content_hash and the event before';
      this.#issue(event, 'hash_mismatch', detail);
    }
  }

  #noteSignatures(read: ReadEvent, findings: Awaited<ReturnType<SignatureCheck>>): void {
    for (const { kind, outcome, detail } of findings) {
      if (outcome === 'bad') this.#issue(read.event, `invalid_${kind}_sig`, detail);
      else if (outcome === 'unknown_keys') this.#unchecked(read.event, `${kind}_keys_unknown`, detail);
      else if (outcome === 'good') this.#verified(read.event, kind);
      else if (!this.#trusted.actor) this.#unchecked(read.event, 'actor_keys_untrusted', detail);
    }
  }

  #verified(event: Event, kind: 'actor' | 'authority'): void {
    if (kind === 'actor') this.#checked.actorSignatures += 1;
    else this.#isSealed = true;
    if (this.#trusted[kind]) return;
    const what = kind === 'actor' ? 'signature' : 'seal';
    const detail = `the key of the ${what} came with the events, and nobody vouches for it`;
    this.#unchecked(event, `${kind}_keys_untrusted`, detail);
  }

  /** Reports what the service cannot have decided, without what the checks above have reported already. */
  #checkDecision(read: ReadEvent, isFaulty: boolean): void {
    for (const { type, detail } of this.#decisions.take(ledgerEvent(read)))
      if (type !== 'contradiction' || !isFaulty) this.#issue(read.event, type, detail);
  }

  /** Later events are checked against the hashes shown, so a wrong hash is an issue of its own event alone. */
  #advance(event: Event, master: MasterHead | null): void {
    this.#wanted.delete(event.hash);
    this.#previous = event;
    if (event.eventType === 'GENESIS') this.#genesis = event.payload;
    if (event.masterId === null || event.masterSeq === null) return;
    const created = event.eventType === 'TRACELEDGER_MASTER_CREATED' ? event.payload : (master?.created ?? null);
    const { masterSeq: seq, seq: ledgerSeq, contentHash } = event;
    this.#masters.set(event.masterId, { seq, ledgerSeq, contentHash, created });
  }
}
