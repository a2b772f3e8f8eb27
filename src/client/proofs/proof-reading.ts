import { contentHash, contentJson, eventHash } from '../../domain/event/content.ts';
import { decodeBase64 } from '../../domain/keys/base64.ts';
import { platformCrypto } from '../../domain/keys/crypto.ts';
import { sha256HexForm } from '../../domain/keys/hash.ts';
import type { Checkpoint } from '../../domain/log/checkpoint.ts';
import { type LogKind, originOf, parseOrigin } from '../../domain/log/origin.ts';
import { ProofRefused } from '../../domain/log/proof-refused.ts';
import { HASH_BYTES, isSameHash } from '../../domain/log/tree.ts';
import { isUuid } from '../../domain/values/uuid-form.ts';
import type {
  GetLedgerCheckpointResponse,
  GetLedgerConsistencyResponse,
  GetLedgerInclusionResponse,
  GetMasterInclusionResponse,
} from '../../gen/svc/v1/proofs_pb.ts';
import type { GetAuthorityResponse } from '../../gen/svc/v1/resolver_pb.ts';
import { ask, type Caller } from '../call/call.ts';
import { invalidAnswer, LedgerTrustError } from '../error.ts';
import { type Event, eventContent, readEvent } from '../event.ts';
import type { CallOptions } from '../methods.ts';
import type { Answer } from '../shapes.ts';
import { createSingleEvents } from '../single-events.ts';
import { malformed } from '../verify/verification.ts';
import { memoryWatermarks, type WatermarkState, type WatermarkStore } from '../watermark-store.ts';
import { firstTrust, mergedTrust, originChanged, withEndorsedKeys, withGivenKeys, withNewOrigin } from './log-trust.ts';
import { verifyCheckpoint, verifyConsistency, verifyInclusion } from './verify-proof.ts';

export type ProofOptions = Pick<CallOptions, 'signal' | 'timeoutMs' | 'attemptsMax'>;

export interface CheckpointOptions extends ProofOptions {
  /** Number of events that the checkpoint covers. All that are certain if left out. */
  readonly size?: number;
}

/** A checkpoint whose signature was verified, and which agrees with the one that was kept of its log. */
export interface VerifiedCheckpoint extends Checkpoint {
  /** The signed note. Keep it: later states of the log must continue it. */
  readonly note: string;
}

/** The proof that an event is in its ledger. */
export interface ProvenEvent {
  /** Of the size `index` + 1: the event is the last one that it covers. */
  readonly checkpoint: VerifiedCheckpoint;
  /** `seq` of the event. */
  readonly index: number;
  /** The proof file (c2sp.org/tlog-proof). It verifies offline: `verifyInclusion`. */
  readonly proof: string;
}

/**
 * Reads checkpoints and proofs. They return what they have verified, and else throw ProofRefused, or what a call
 * throws. The client's watermarks say which name and which keys of the service are accepted, and what the logs were
 * before. Without `watermarks`, the client keeps them until it ends: it accepts the name and the keys that the service
 * shows first.
 */
export interface ProofReading {
  /** A checkpoint of a ledger. The newest one must not be smaller than the kept one, and becomes the kept one. */
  checkpoint(ledgerId: string, options?: CheckpointOptions): Promise<VerifiedCheckpoint>;
  /** The same for a master. */
  masterCheckpoint(masterId: string, options?: CheckpointOptions): Promise<VerifiedCheckpoint>;
  /**
   * Proves that the service has signed a state of the ledger that ends with this event. The hashes of the event are
   * recomputed from its fields. For all who may read the event. The state is compared with the kept checkpoint of the
   * ledger, if there is one.
   */
  proveEvent(event: Event, options?: ProofOptions): Promise<ProvenEvent>;
}

export function createProofReading(reader: ProofReader): ProofReading {
  return {
    checkpoint: (ledgerId, options) => reader.checkpoint({ kind: 'ledger', id: ledgerId }, options),
    masterCheckpoint: (masterId, options) => reader.checkpoint({ kind: 'master', id: masterId }, options),
    proveEvent: (event, options) => reader.proveEvent(event, options),
  };
}

export interface LogName {
  readonly kind: LogKind;
  readonly id: string;
}

/** `record`: 32 bytes, `hash` of an event in a ledger log, `content_hash` in a master log. */
export interface IndexedRecord {
  readonly index: number;
  readonly record: Uint8Array;
}

const methods = {
  ledger: {
    checkpoint: 'getLedgerCheckpoint',
    consistency: 'getLedgerConsistency',
    inclusion: 'getLedgerInclusion',
    id: 'ledgerId',
    index: 'seq',
  },
  master: {
    checkpoint: 'getMasterCheckpoint',
    consistency: 'getMasterConsistency',
    inclusion: 'getMasterInclusion',
    id: 'uuid',
    index: 'masterSeq',
  },
} as const;

/** A checkpoint, and what is accepted of the service since it was verified. */
interface Found {
  readonly checkpoint: VerifiedCheckpoint;
  readonly trust: WatermarkState;
}

export class ProofReader {
  readonly #caller: Caller;
  readonly #store: WatermarkStore;

  constructor(caller: Caller, store: WatermarkStore = memoryWatermarks()) {
    this.#caller = caller;
    this.#store = store;
  }

  async checkpoint(log: LogName, { size, ...options }: CheckpointOptions = {}): Promise<VerifiedCheckpoint> {
    checkId(log.id);
    const before = await this.#basis(options);
    const method = methods[log.kind];
    const request = { [method.id]: log.id, ...(size === undefined ? {} : { size }) };
    const answer = await ask<GetLedgerCheckpointResponse>(this.#caller, method.checkpoint, request, options);
    const note = answer.checkpoint;
    const { checkpoint, trust } = await this.#verified(log, answer.origin, before, options, (expected) => ({
      ...verifyCheckpoint(note, expected),
      note,
    }));
    checkSizes(answer.size, checkpoint.size, size);
    const root = decodeBase64(answer.rootHash, HASH_BYTES);
    if (root === null || !isSameHash(root, checkpoint.root))
      throw invalidAnswer('root_hash', 'line 3 of the checkpoint');
    const kept = keptOf(before, checkpoint.origin);
    if (size === undefined && kept !== null && checkpoint.size < kept.size)
      throw new ProofRefused(
        'checkpoint_behind',
        `The newest checkpoint of ${checkpoint.origin} covers ${checkpoint.size} events; a kept one covers ${kept.size}.`,
        [kept.note, note],
      );
    await this.#keep(log, { checkpoint, trust }, { addsLog: true }, options);
    return checkpoint;
  }

  /**
   * Takes a checkpoint that a stream has brought: verifies it, compares it with the kept one, and keeps it if it is
   * larger. A smaller one is no fault: another node may have sent it. `verified` gets the checkpoint before it is
   * compared with the kept one, for which the service may refuse the proof.
   */
  async takeNote(
    log: LogName,
    note: string,
    options: ProofOptions = {},
    verified: (checkpoint: VerifiedCheckpoint) => void = () => {},
  ): Promise<VerifiedCheckpoint> {
    const before = await this.#basis(options);
    const origin = note.slice(0, Math.max(0, note.indexOf('\n')));
    const found = await this.#verified(log, origin, before, options, (expected) => ({
      ...verifyCheckpoint(note, expected),
      note,
    }));
    verified(found.checkpoint);
    await this.#keep(log, found, { addsLog: true }, options);
    return found.checkpoint;
  }

  async proveEvent(event: Event, options: ProofOptions = {}): Promise<ProvenEvent> {
    const { ledgerId, seq } = event;
    const wrong = malformed(event);
    if (wrong !== null) throw new ProofRefused('wrong_event', `The event is malformed: ${wrong}.`);
    const log: LogName = { kind: 'ledger', id: ledgerId };
    const before = await this.#basis(options);
    const [answer, masterPrevHash] = await Promise.all([
      this.#inclusion<GetLedgerInclusionResponse>(log, seq, options),
      this.#masterPrevHash(event, options),
    ]);
    // Other texts than hex digits would be cut short, and the hash would not cover the content.
    if (seq === 0 ? answer.prevHash !== '' : !sha256HexForm.test(answer.prevHash))
      throw invalidAnswer('prev_hash', 'the hash of the event before');
    const record = recordOf(event, answer.prevHash, masterPrevHash);
    return this.#proven(log, { index: seq, record }, answer, before, options);
  }

  /** Proves that the service has signed a state of the log that ends with this record. */
  async proveRecord(log: LogName, indexed: IndexedRecord, options: ProofOptions = {}): Promise<ProvenEvent> {
    const before = await this.#basis(options);
    const answer = await this.#inclusion<GetMasterInclusionResponse>(log, indexed.index, options);
    return this.#proven(log, indexed, answer, before, options);
  }

  /** At its own place, an event is proved to all who may read it. */
  #inclusion<T>(log: LogName, index: number, options: ProofOptions): Promise<Answer<T>> {
    const method = methods[log.kind];
    const request = { [method.id]: log.id, [method.index]: index, size: index + 1 };
    return ask<T>(this.#caller, method.inclusion, request, options);
  }

  async #proven(
    log: LogName,
    { index, record }: IndexedRecord,
    answer: Answer<GetMasterInclusionResponse>,
    before: WatermarkState,
    options: ProofOptions,
  ): Promise<ProvenEvent> {
    const file = answer.proof;
    const { checkpoint, trust } = await this.#verified(log, answer.origin, before, options, (expected) => ({
      ...verifyInclusion(file, { ...expected, record, index }),
      note: file.slice(file.indexOf('\n\n') + 2),
    }));
    checkSizes(answer.size, checkpoint.size, index + 1);
    if (answer.index !== index) throw invalidAnswer('index', `the place of the event, ${index}`);
    await this.#keep(log, { checkpoint, trust }, { addsLog: false }, options);
    return { checkpoint, index, proof: file };
  }

  /** What is accepted of the service when a call begins: from the watermarks or, without any, its trust anchor. */
  async #basis(options: ProofOptions): Promise<WatermarkState> {
    const kept = await this.#store.read();
    const { newOrigin } = this.#store;
    if (kept === null) return firstTrust(await this.#anchor(options), this.#store);
    const isSameName = newOrigin === undefined || newOrigin === kept.origin;
    return isSameName
      ? withGivenKeys(kept, this.#store)
      : withNewOrigin(kept, await this.#anchor(options), this.#store);
  }

  /** Runs the check of a checkpoint, and once more with newly endorsed keys if none of the known ones has signed. */
  async #verified(
    log: LogName,
    answeredOrigin: string,
    trust: WatermarkState,
    options: ProofOptions,
    verify: (expected: { readonly origin: string; readonly keys: readonly string[] }) => VerifiedCheckpoint,
  ): Promise<Found> {
    const origin = originOf({ serviceName: trust.origin, ...log });
    const serviceName = parseOrigin(answeredOrigin)?.serviceName ?? trust.origin;
    if (serviceName !== trust.origin) throw originChanged(trust.origin, serviceName);
    if (answeredOrigin !== origin)
      throw new ProofRefused('wrong_origin', `The answer is about ${answeredOrigin}, not about ${origin}.`);
    try {
      return { checkpoint: verify({ origin, keys: trust.logKeys }), trust };
    } catch (error) {
      if (!(error instanceof ProofRefused) || error.reason !== 'unknown_log_key') throw error;
      const endorsed = withEndorsedKeys(trust, await this.#anchor(options));
      if (endorsed.logKeys.length === trust.logKeys.length) throw error;
      return { checkpoint: verify({ origin, keys: endorsed.logKeys }), trust: endorsed };
    }
  }

  /**
   * Keeps the checkpoint if it is the largest of its log, once it agrees with the kept one. `addsLog`: also if none is
   * kept of this log. A partial reader of a ledger gets no proofs of consistency, so none is kept for it.
   */
  async #keep(
    log: LogName,
    { checkpoint, trust }: Found,
    { addsLog }: { readonly addsLog: boolean },
    options: ProofOptions,
  ): Promise<void> {
    let compared: VerifiedCheckpoint | null = null;
    for (;;) {
      const others: VerifiedCheckpoint[] = [];
      await this.#store.update((state) => {
        const merged = mergedTrust(state, trust);
        const kept = keptOf(merged, checkpoint.origin);
        if (kept !== null && kept.note !== compared?.note) {
          // Another call may have kept it while this one was under way.
          others.push(kept);
          return null;
        }
        const keeps = kept === null ? addsLog : checkpoint.size > kept.size;
        if (!keeps) return merged;
        return { ...merged, checkpoints: new Map([...merged.checkpoints, [checkpoint.origin, checkpoint.note]]) };
      });
      const [other] = others;
      if (other === undefined) return;
      await this.#requireAgreement(log, other, checkpoint, options);
      compared = other;
    }
  }

  async #requireAgreement(
    log: LogName,
    kept: VerifiedCheckpoint,
    found: VerifiedCheckpoint,
    options: ProofOptions,
  ): Promise<void> {
    const [from, to] = kept.size <= found.size ? [kept, found] : [found, kept];
    const method = methods[log.kind];
    const request = { [method.id]: log.id, from: from.size, to: to.size };
    try {
      const hashes =
        from.size === to.size
          ? []
          : (await ask<GetLedgerConsistencyResponse>(this.#caller, method.consistency, request, options)).hashes;
      verifyConsistency(from, to, hashes);
    } catch (error) {
      if (error instanceof LedgerTrustError) {
        const { code, message, cause } = error;
        throw new LedgerTrustError(code, message, { ...error, cause, notes: [kept.note, found.note] });
      }
      if (!(error instanceof ProofRefused)) throw error;
      throw new ProofRefused(
        'checkpoints_contradict',
        `The service cannot show that its checkpoints of ${found.origin} at the sizes ${kept.size} and ${found.size} agree: one of them is of a history that the other does not have. Keep both notes.`,
        [kept.note, found.note],
      );
    }
  }

  /** The content hash of the event before in the same master. A false one is noticed: `content_hash` covers it. */
  async #masterPrevHash({ masterId, masterSeq }: Event, options: ProofOptions): Promise<string> {
    if (masterId === null || masterSeq === null || masterSeq === 0) return '';
    const before = await createSingleEvents(this.#caller, options).masterEvent(masterId, masterSeq - 1);
    if (before === null) throw invalidAnswer('events', `the event with master_seq ${masterSeq - 1}`);
    return before.contentHash;
  }

  #anchor(options: ProofOptions): Promise<Answer<GetAuthorityResponse>> {
    return ask<GetAuthorityResponse>(this.#caller, 'getAuthority', {}, options);
  }
}

/** The kept checkpoint of a log, verified again, since the store may have been changed. null: none is kept. */
function keptOf({ checkpoints, logKeys }: WatermarkState, origin: string): VerifiedCheckpoint | null {
  const note = checkpoints.get(origin);
  if (note === undefined) return null;
  try {
    return { ...verifyCheckpoint(note, { origin, keys: logKeys }), note };
  } catch (error) {
    if (!(error instanceof ProofRefused)) throw error;
    throw new ProofRefused(error.reason, `The kept checkpoint of ${origin} is damaged: ${error.message}`);
  }
}

/** The record of an event in its ledger log, recomputed from the fields of the event. */
function recordOf(event: Event, prevHash: string, masterPrevHash: string): Uint8Array {
  const content = contentHash(contentJson(eventContent(readEvent(event), masterPrevHash)));
  const hash = eventHash(prevHash, content);
  if (content !== event.contentHash || hash !== event.hash)
    throw new ProofRefused('wrong_event', `The event ${event.id} does not have the hashes that it shows.`);
  return platformCrypto.fromHex(hash);
}

function checkSizes(answered: number, signed: number, asked: number | undefined): void {
  if (answered !== signed) throw invalidAnswer('size', 'line 2 of the checkpoint');
  if (asked !== undefined && signed !== asked) throw invalidAnswer('size', `the size that was asked for, ${asked}`);
}

function checkId(id: string): void {
  if (!isUuid(id)) throw new TypeError(`${JSON.stringify(id)} is no UUID in lower case`);
}
