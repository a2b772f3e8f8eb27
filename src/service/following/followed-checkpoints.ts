import type { LedgerStore } from '../../store/ledger-store.ts';
import type { Log, ProvenLogs } from '../proofs/proven-logs.ts';
import type { Walk } from '../walking/walk.ts';

/** The checkpoint of one log is made ready at most this often, ms. */
const restMs = 1_000;

export interface FollowedCheckpointsParts {
  readonly logs: Pick<ProvenLogs, 'newestSize' | 'checkpoint'>;
  readonly ledgers: Pick<LedgerStore, 'head'>;
  monotonicMs(): number;
}

interface Ready {
  readonly size: number;
  readonly note: string;
  /** No event behind this seq is covered. */
  readonly throughSeq: number;
}

interface KeptLog {
  followers: number;
  /** The newest one that may be shown. */
  shown: Ready | null;
  /** It covers events that the tail may not have read. */
  next: Ready | null;
  /** The newest seq of the ledger when it was made ready last; null: it was not, or that failed. */
  readySeq: number | null;
  /** When that began (monotonic, ms). */
  askedMs: number;
  isAsked: boolean;
}

/**
 * The newest checkpoints of a followed ledger and its masters, signed once for all followers on this node. They are
 * made ready before they are sent, so that no heartbeat waits for one.
 */
export class FollowedCheckpoints {
  readonly #ledgerId: string;
  readonly #parts: FollowedCheckpointsParts;
  readonly #logs = new Map<string, KeptLog>();

  constructor(ledgerId: string, parts: FollowedCheckpointsParts) {
    this.#ledgerId = ledgerId;
    this.#parts = parts;
  }

  /** A follower that may get the checkpoints of a log has begun. `masterId` null: those of the ledger. */
  add(masterId: string | null): void {
    const id = this.#idOf(masterId);
    const kept = this.#logs.get(id) ?? {
      ...{ followers: 0, shown: null, next: null, readySeq: null, isAsked: false },
      askedMs: Number.NEGATIVE_INFINITY,
    };
    kept.followers += 1;
    this.#logs.set(id, kept);
  }

  /** It has ended. The checkpoints of a log that has no follower any more are forgotten. */
  remove(masterId: string | null): void {
    const id = this.#idOf(masterId);
    const kept = this.#logs.get(id);
    if (kept === undefined) return;
    kept.followers -= 1;
    if (kept.followers === 0) this.#logs.delete(id);
  }

  /**
   * Has the newest checkpoint made, unless the ledger is where it was then.
   * `readSeq`: the newest seq that was read. A failure leaves the earlier checkpoint.
   */
  prepare(
    masterId: string | null,
    readSeq: number,
    readIn: (read: (walk: Walk) => Promise<void>) => Promise<void>,
  ): void {
    const kept = this.#logs.get(this.#idOf(masterId));
    if (kept === undefined) return;
    const nowMs = this.#parts.monotonicMs();
    this.#show(kept, readSeq);
    // Keep a checkpoint that waits for the tail: under load each newer one would wait too.
    if (kept.next !== null) return;
    if (kept.isAsked || kept.readySeq === readSeq || nowMs - kept.askedMs < restMs) return;
    kept.isAsked = true;
    kept.askedMs = nowMs;
    readIn((walk) => this.#makeReady(kept, this.#logOf(masterId), walk))
      .then(() => {
        kept.readySeq = readSeq;
      })
      // The next heartbeat has it tried again.
      .catch(() => {})
      .finally(() => {
        kept.isAsked = false;
      });
  }

  /** The newest checkpoint that covers no event behind `readSeq`; null if none was made ready. */
  newest(masterId: string | null, readSeq: number): string | null {
    const kept = this.#logs.get(this.#idOf(masterId));
    if (kept === undefined) return null;
    this.#show(kept, readSeq);
    return kept.shown?.note ?? null;
  }

  #show(kept: KeptLog, readSeq: number): void {
    if (kept.next === null || kept.next.throughSeq > readSeq) return;
    kept.shown = kept.next;
    kept.next = null;
  }

  async #makeReady(kept: KeptLog, log: Log, walk: Walk): Promise<void> {
    const { logs, ledgers } = this.#parts;
    const size = await logs.newestSize(log, walk);
    if (size === 0 || size === (kept.next ?? kept.shown)?.size) return;
    const signed = await logs.checkpoint(log, size, walk, true);
    if (signed === null) return;
    // It was read behind the checkpoint, which covers no later event.
    const head = await walk.readOne(() => ledgers.head(this.#ledgerId));
    kept.next = { size: signed.size, note: signed.checkpoint, throughSeq: head?.seq ?? -1 };
  }

  #logOf(masterId: string | null): Log {
    const ledgerId = this.#ledgerId;
    return masterId === null ? { kind: 'ledger', id: ledgerId, ledgerId } : { kind: 'master', id: masterId, ledgerId };
  }

  #idOf(masterId: string | null): string {
    return masterId ?? this.#ledgerId;
  }
}
