import type { LedgerError } from '../../domain/errors.ts';
import type { CompactRange } from '../../domain/log/compact-range.ts';
import type { SignedHead, SignedHeads } from '../../store/signed-heads.ts';
import { Edge } from './edge.ts';
import type { NamedLog } from './log-trees.ts';
import type { SignedSize } from './proven-logs.ts';

/** The tiles of a log are made anew, because they do not agree with the signed head. */
export interface Remake {
  /** When it ended, ms. null: it is under way. */
  endedAtMs: number | null;
  /** `behind`: the events are others than those of the signed head. An error, or `failed`: it ended in vain. */
  outcome: 'agrees' | 'behind' | 'failed' | LedgerError | null;
}

/** What a node keeps of a log that it was asked for. */
export class SignedLog {
  readonly log: NamedLog;
  /** So many leaves are certain, as far as the node knows. */
  certain = 0;
  /** Agrees with the signed head: it was compared with it when it was made. null: not made yet. */
  edge: Edge | null = null;
  /** The last checkpoint that was signed. Callers that ask for the same size meanwhile get it as well. */
  last: SignedSize | null = null;
  /** When the log was found to be behind, ms. It is looked at again a while later. */
  behindSince = Number.NEGATIVE_INFINITY;
  /** The last remake. null: there was none, or the log was behind and is not any more. */
  remake: Remake | null = null;
  readonly #heads: SignedHeads;
  /** The signed head. null: nothing was signed yet. undefined: not read, or a raise has an unknown outcome. */
  #signed: SignedHead | null | undefined;
  /** The newest head that this process has raised. It agrees with all that was signed. */
  #raised: SignedHead | null = null;
  #epoch = 0;
  #next: SignedHead | null = null;
  #raising: Promise<void> | null = null;

  constructor(log: NamedLog, heads: SignedHeads) {
    this.log = log;
    this.#heads = heads;
  }

  get signed(): SignedHead | null | undefined {
    return this.#signed;
  }

  get raised(): SignedHead | null {
    return this.#raised;
  }

  /**
   * Goes up whenever the signed head is forgotten. What was read or compared in an earlier epoch is neither kept nor
   * raised: the head that is read next may be another one.
   */
  get epoch(): number {
    return this.#epoch;
  }

  /** It is kept by `keepSigned`, once the store was found to have all that it covers. */
  readSigned(): Promise<SignedHead | null> {
    return this.#heads.get(this.log.origin);
  }

  /**
   * Keeps a signed head that was read in this epoch. Another call may have raised it meanwhile: returns the larger one.
   */
  keepSigned(head: SignedHead | null, epoch: number): SignedHead | null {
    if (epoch !== this.#epoch) return head;
    if ((this.#signed?.size ?? 0) <= (head?.size ?? 0)) this.#signed = head;
    return this.#signed ?? null;
  }

  /** Whatever is known of the log is read again. */
  forget(): void {
    this.#forgetSigned();
    this.certain = 0;
  }

  makeEdge(range: CompactRange): void {
    if (this.edge === null || this.edge.size < range.size) this.edge = new Edge(range);
  }

  /**
   * Resolves with true when a head of at least this size is durable, and with false if the signed head was forgotten
   * since `epoch`, in which the head was compared with it. One raise at a time is under way. Callers that come
   * meanwhile share the next one, which takes the largest of their heads.
   */
  async raise(head: SignedHead, epoch: number): Promise<boolean> {
    while (epoch === this.#epoch) {
      if ((this.#signed?.size ?? 0) >= head.size) return true;
      if (this.#next === null || this.#next.size < head.size) this.#next = head;
      this.#raising ??= this.#raiseNext().finally(() => {
        this.#raising = null;
      });
      await this.#raising;
    }
    return false;
  }

  async #raiseNext(): Promise<void> {
    const [head, epoch] = [this.#next, this.#epoch];
    this.#next = null;
    if (head === null) return;
    try {
      await this.#heads.raise(this.log.origin, head.size, head.root);
      this.keepSigned(head, epoch);
      if (epoch === this.#epoch) this.#raised = head;
    } catch (error) {
      // Another node may have raised it: what is kept was not compared with that.
      this.#forgetSigned();
      throw error;
    }
  }

  #forgetSigned(): void {
    this.#epoch += 1;
    this.#signed = undefined;
    this.#next = null;
    this.#raised = null;
    this.edge = null;
    this.last = null;
  }
}
