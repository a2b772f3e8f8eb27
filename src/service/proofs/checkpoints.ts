import type { EventEntry } from '../../actors/ledger/commit-listener.ts';
import { LedgerError } from '../../domain/errors.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { type LogSigner, signCheckpoint } from '../../domain/log/checkpoint.ts';
import { originOf } from '../../domain/log/origin.ts';
import { compactRangeAt, type HashSource, subtreeHash } from '../../domain/log/subtree-hash.ts';
import { TILE_HASHES } from '../../domain/log/tiles.ts';
import { isSameHash, leafHash } from '../../domain/log/tree.ts';
import { consistencyPath, inclusionPath, isConsistent, isIncluded } from '../../domain/log/tree-proof.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { SignedHead, SignedHeads } from '../../store/signed-heads.ts';
import type { BehindLogs } from '../log-identity/behind-logs.ts';
import { logBehind } from '../log-identity/log-identity.ts';
import { unboundedWalk, type Walk } from '../walking/walk.ts';
import type { CertainHeads } from './certain-heads.ts';
import { isBrokenRow, type LogRows } from './log-rows.ts';
import { type LogTrees, treeBuilding } from './log-trees.ts';
import type { Log, ProvenLogs, SignedSize } from './proven-logs.ts';
import { type Remake, SignedLog } from './signed-log.ts';

/** Logs of which a node keeps the edge and the signed head: 64 MiB, at 1.6 KB each. */
const logsKeptMax = 40_000;
/** A log that was found to be behind is looked at again after this time, ms. */
const behindRestMs = 10_000;
/** So long after the end of a remake the next one may begin, ms. */
const remakeRestMs = 10_000;
/** The same after one that found the log to be behind: by then its events may be back. */
const behindRemakeRestMs = 600_000;
/** From an edge to a newer size, so many events are read at most. Beyond that, the tree is read from its tiles. */
const forwardMax = 1_024;

interface CheckpointsParts {
  readonly store: Pick<LedgerStore, 'head'>;
  readonly heads: SignedHeads;
  readonly certainHeads: CertainHeads;
  readonly rows: LogRows;
  readonly trees: LogTrees;
  readonly signer: LogSigner & { readonly behind: Pick<BehindLogs, 'store' | 'has' | 'learn'> };
  readonly clock: Clock;
  readonly meter: { checkpointSigned(kind: Log['kind']): void };
}

/**
 * Signs checkpoints, so that no two ever contradict one another. Before a checkpoint leaves the process:
 * - its leaves are certain: no crash and no other node can take them back;
 * - its tree agrees with the largest one that was signed, the signed head;
 * - a signed head of its size or a larger one is durable;
 * - the store has all events that were signed.
 */
export class Checkpoints implements ProvenLogs {
  readonly #parts: CheckpointsParts;
  readonly #logs = new RecentMap<string, SignedLog>(logsKeptMax);

  constructor(parts: CheckpointsParts) {
    this.#parts = parts;
  }

  /** Learns of events of this node that were committed: extends the edges of their logs. */
  committed(ledgerId: string, entries: readonly EventEntry[]): void {
    if (this.#logs.size === 0) return;
    const ledger = this.#logs.get(this.#originOf({ kind: 'ledger', id: ledgerId }));
    if (ledger === undefined) return;
    const first = entries[0]?.seq ?? 0;
    for (const entry of entries) {
      ledger.certain = Math.max(ledger.certain, entry.seq + 1);
      ledger.edge?.committed(entry.seq, leafHash(Buffer.from(entry.hash, 'hex')));
      this.#committedInMaster(entry.event);
    }
    const size = first + entries.length;
    const isTileFull = Math.floor(first / TILE_HASHES) < Math.floor(size / TILE_HASHES);
    if (isTileFull && ledger.edge !== null) this.#parts.trees.fill(ledger.log, size);
  }

  #committedInMaster({ master, contentHash }: LedgerEvent): void {
    if (master === null) return;
    const kept = this.#logs.get(this.#originOf({ kind: 'master', id: master.id }));
    if (kept === undefined) return;
    kept.certain = Math.max(kept.certain, master.seq + 1);
    kept.edge?.committed(master.seq, leafHash(Buffer.from(contentHash, 'hex')));
  }

  async newestSize(log: Log, walk: Walk): Promise<number> {
    const ofLedger = await this.#ledgerSize(log.ledgerId, walk);
    const size = log.kind === 'ledger' ? ofLedger : await this.#parts.rows.masterSize(log, ofLedger, walk);
    const kept = this.#kept(log);
    kept.certain = Math.max(kept.certain, size);
    return kept.certain;
  }

  async checkpoint(log: Log, size: number, walk: Walk, orLarger = false): Promise<SignedSize | null> {
    const kept = this.#kept(log);
    this.#refuseBehind(kept);
    const { epoch } = kept;
    const signed = kept.signed === undefined ? await this.#readSigned(kept, walk) : kept.signed;
    const isCertain = size <= kept.certain || size <= (signed?.size ?? 0);
    if (!isCertain && size > (await this.newestSize(log, walk))) return null;
    const agreed = await this.#agreedHead(kept, signed, size, orLarger, walk);
    // Otherwise the log was found to be behind while this call read.
    if (kept.epoch === epoch) this.#noLongerBehind(kept);
    const isCovered =
      agreed.size <= (signed?.size ?? 0) ||
      (await kept.raise({ size: agreed.size, root: Buffer.from(agreed.root) }, epoch));
    this.#refuseBehind(kept);
    // The raise of another call failed since this one agreed with the signed head, which may be another one by now.
    if (!isCovered)
      throw new LedgerError(
        'unavailable',
        'What was signed last of this log could not be stored, and has to be read again: retry in a moment.',
      );
    // A larger one was raised for other callers meanwhile: one signature serves them all.
    const { raised } = kept;
    return this.#sign(kept, orLarger && raised !== null && raised.size > agreed.size ? raised : agreed);
  }

  #sign(kept: SignedLog, { size, root }: TreeHead): SignedSize {
    const { last } = kept;
    if (last !== null && last.size === size && isSameHash(last.root, root)) return last;
    const { kind, origin } = kept.log;
    const checkpoint = signCheckpoint({ origin, size, root }, this.#parts.signer);
    this.#parts.meter.checkpointSigned(kind);
    kept.last = { origin, size, root, checkpoint };
    return kept.last;
  }

  async inclusion(log: Log, index: number, size: number, walk: Walk): Promise<readonly Uint8Array[]> {
    const path = inclusionPath(index, size);
    const leaf = { from: index, to: index + 1 };
    const whole = { from: 0, to: size };
    const hashAt = await this.#parts.trees.hashes(this.#kept(log).log, [...path, leaf, whole], size, walk);
    const hashes = path.map((subtree) => subtreeHash(subtree, hashAt));
    const claim = { leafHash: subtreeHash(leaf, hashAt), index, size, root: subtreeHash(whole, hashAt), hashes };
    if (!isIncluded(claim)) throw wrongProof(log, `of inclusion of ${index} in ${size}`);
    return hashes;
  }

  async consistency(log: Log, from: number, to: number, walk: Walk): Promise<readonly Uint8Array[]> {
    const path = consistencyPath(from, to);
    const roots = [from, to].map((size) => ({ from: 0, to: size }));
    const hashAt = await this.#parts.trees.hashes(this.#kept(log).log, [...path, ...roots], to, walk);
    const hashes = path.map((subtree) => subtreeHash(subtree, hashAt));
    const claim = { oldSize: from, oldRoot: rootAt(from, hashAt), newSize: to, newRoot: rootAt(to, hashAt), hashes };
    if (!isConsistent(claim)) throw wrongProof(log, `of consistency of ${from} and ${to}`);
    return hashes;
  }

  #originOf({ kind, id }: Pick<Log, 'kind' | 'id'>): string {
    return originOf({ serviceName: this.#parts.signer.serviceName, kind, id });
  }

  #kept(log: Log): SignedLog {
    const origin = this.#originOf(log);
    const kept = this.#logs.get(origin) ?? new SignedLog({ ...log, origin }, this.#parts.heads);
    // Sets it also if it is there: the log that was asked for longest ago leaves first.
    this.#logs.set(origin, kept);
    return kept;
  }

  /** The number of certain events of a ledger, none of which was committed after the call. */
  async #ledgerSize(ledgerId: string, walk: Walk): Promise<number> {
    const kept = this.#kept({ kind: 'ledger', id: ledgerId, ledgerId });
    const head = await walk.readOne(() => this.#parts.store.head(ledgerId, walk.signal));
    // Not what is kept at the end: another call may find the log behind meanwhile, and forget it.
    return (head?.seq ?? -1) + 1 > kept.certain ? this.#readCertain(kept) : kept.certain;
  }

  /** By a read of the store that begins after the call. */
  async #readCertain(kept: SignedLog): Promise<number> {
    const size = await this.#parts.certainHeads.size(kept.log.ledgerId);
    kept.certain = Math.max(kept.certain, size);
    return size;
  }

  /** Reads the signed head, and then whether the store has all that was signed. Throws `log_behind` if not. */
  async #readSigned(kept: SignedLog, walk: Walk): Promise<SignedHead | null> {
    const { log, epoch } = kept;
    const signed = await walk.readOne(() => kept.readSigned());
    const ledger = this.#kept({ kind: 'ledger', id: log.ledgerId, ledgerId: log.ledgerId });
    const inStore = await this.#readCertain(ledger);
    const size = log.kind === 'ledger' ? inStore : await this.#parts.rows.masterSize(log, inStore, walk);
    kept.certain = Math.max(kept.certain, size);
    if (signed !== null && size < signed.size) throw this.#foundBehind(kept);
    return kept.keepSigned(signed, epoch);
  }

  /** The root at a certain size, or at a larger one if that is allowed, of a tree that agrees with the signed head. */
  async #agreedHead(
    kept: SignedLog,
    signed: SignedHead | null,
    size: number,
    orLarger: boolean,
    walk: Walk,
  ): Promise<TreeHead> {
    const { log, edge } = kept;
    const { rows, trees } = this.#parts;
    if (edge !== null && size - edge.size <= forwardMax) {
      await edge.forward(size, (from, to) => rows.leaves(log, { from, to }, walk));
      // On the node that commits, the edge goes on meanwhile.
      if (edge.size === size || orLarger) return { size: edge.size, root: edge.root() };
    }
    const signedSize = signed?.size ?? size;
    const [oldSize, newSize] = size < signedSize ? [size, signedSize] : [signedSize, size];
    const path = consistencyPath(oldSize, newSize);
    const { remake } = kept;
    const isRemaking = remake?.endedAtMs === null;
    const hashAt = await trees.hashes(log, [...path, { from: 0, to: size }], newSize, walk);
    // This call may have read some tiles before they were made anew, and others after that.
    if (isRemaking || kept.remake !== remake) throw this.#whileRemaking(kept);
    const root = rootAt(size, hashAt);
    if (
      signed !== null &&
      !agrees(
        signed,
        { size, root },
        path.map((subtree) => subtreeHash(subtree, hashAt)),
      )
    )
      throw this.#remakeTiles(kept, signed, newSize);
    // Only from an edge at or beyond the signed head do all later roots agree with it.
    const mayBeEdge = kept.signed === signed && size >= (signed?.size ?? 0) && kept.certain - size <= forwardMax;
    if (mayBeEdge) kept.makeEdge(compactRangeAt(size, hashAt));
    return { size, root };
  }

  /**
   * The tiles may be wrong: they are made anew. If what they say then is not the signed head, the events are others.
   * Until that is known, callers are told that the tree is being made.
   */
  #remakeTiles(kept: SignedLog, signed: SignedHead, size: number): LedgerError {
    const { clock, trees } = this.#parts;
    const { endedAtMs = null, outcome = null } = kept.remake ?? {};
    const restMs = outcome === 'behind' ? behindRemakeRestMs : remakeRestMs;
    if (endedAtMs !== null && clock.now() < endedAtMs + restMs) {
      if (outcome === 'behind') return this.#foundBehind(kept);
      return isBrokenRow(outcome) ? outcome : this.#whileRemaking(kept);
    }
    const made = trees.remake(kept.log, signed.size, Math.max(size, kept.certain));
    if (made !== null) void this.#rememberRemake(kept, signed, { endedAtMs: null, outcome: null }, made);
    return this.#whileRemaking(kept);
  }

  async #rememberRemake(kept: SignedLog, signed: SignedHead, remake: Remake, made: Promise<void>): Promise<void> {
    kept.remake = remake;
    try {
      await made;
      const whole = { from: 0, to: signed.size };
      const hashAt = await this.#parts.trees.hashes(kept.log, [whole], signed.size, unboundedWalk());
      remake.outcome = isSameHash(subtreeHash(whole, hashAt), signed.root) ? 'agrees' : 'behind';
    } catch (error) {
      remake.outcome = error instanceof LedgerError ? error : 'failed';
    }
    remake.endedAtMs = this.#parts.clock.now();
    if (remake.outcome === 'behind') this.#foundBehind(kept);
  }

  /** A log that is known to be behind stays so until its tiles agree. */
  #whileRemaking({ log }: SignedLog): LedgerError {
    return this.#parts.signer.behind.has(log.kind, log.origin) ? logBehind() : treeBuilding(0);
  }

  #noLongerBehind(kept: SignedLog): void {
    if (kept.remake?.outcome === 'behind') kept.remake = null;
    this.#parts.signer.behind.learn(kept.log.kind, kept.log.origin, false);
  }

  #foundBehind(kept: SignedLog): LedgerError {
    const { kind, origin } = kept.log;
    kept.behindSince = this.#parts.clock.now();
    kept.forget();
    this.#parts.trees.forget(kept.log);
    this.#parts.signer.behind.learn(kind, origin, true);
    return logBehind();
  }

  #refuseBehind({ behindSince }: SignedLog): void {
    if (this.#parts.signer.behind.store || this.#parts.clock.now() < behindSince + behindRestMs) throw logBehind();
  }
}

type TreeHead = Pick<SignedHead, 'size'> & { readonly root: Uint8Array };

function rootAt(size: number, hashAt: HashSource): Uint8Array {
  return subtreeHash({ from: 0, to: size }, hashAt);
}

function agrees(signed: TreeHead, other: TreeHead, hashes: readonly Uint8Array[]): boolean {
  if (signed.size === other.size) return isSameHash(signed.root, other.root);
  const [old, newer] = signed.size < other.size ? [signed, other] : [other, signed];
  return isConsistent({ oldSize: old.size, oldRoot: old.root, newSize: newer.size, newRoot: newer.root, hashes });
}

/** A defect: the service verifies each proof that it has made. */
function wrongProof({ kind, id }: Log, what: string): Error {
  return new Error(`the proof ${what} that was made for the ${kind} log of ${id} does not verify`);
}
