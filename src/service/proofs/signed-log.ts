import type { CompactRange } from '../../domain/log/compact-range.ts';
import type { SignedHead, SignedHeads } from '../../store/signed-heads.ts';
import { Edge } from './edge.ts';
import type { NamedLog } from './log-trees.ts';
import type { SignedSize } from './proven-logs.ts';

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
  /** All tiles were made anew, because they did not agree with the signed head. */
  wasRemade = false;
  readonly #heads: SignedHeads;
  /** The signed head. null: nothing was signed yet. undefined: not read, or a raise has an unknown outcome. */
  #signed: SignedHead | null | undefined;
  /** The newest head that this process has raised. It agrees with all that was signed. */
  #raised: SignedHead | null = null;
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

  /** It is kept by `keepSigned`, once the store was found to have all that it covers. */
  readSigned(): Promise<SignedHead | null> {
    return this.#heads.get(this.log.origin);
  }

  /** Keeps a signed head. Another call may have raised it meanwhile. Returns the larger one. */
  keepSigned(head: SignedHead | null): SignedHead | null {
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
   * Resolves when a head of at least this size is durable. One raise at a time is under way; callers that come
   * meanwhile share the next one, which takes the largest of their heads.
   */
  async raise(head: SignedHead): Promise<void> {
    while ((this.#signed?.size ?? 0) < head.size) {
      // In each round: `forget` may follow a raise of this head at once.
      if (this.#next === null || this.#next.size < head.size) this.#next = head;
      this.#raising ??= this.#raiseNext().finally(() => {
        this.#raising = null;
      });
      await this.#raising;
    }
  }

  async #raiseNext(): Promise<void> {
    const head = this.#next;
    this.#next = null;
    if (head === null) return;
    try {
      await this.#heads.raise(this.log.origin, head.size, head.root);
      this.keepSigned(head);
      this.#raised = head;
    } catch (error) {
      // Another node may have raised it: what is kept was not compared with that.
      this.#forgetSigned();
      // The calls that wait for the next raise fail with this one.
      this.#next = null;
      throw error;
    }
  }

  #forgetSigned(): void {
    this.#signed = undefined;
    this.#raised = null;
    this.edge = null;
    this.last = null;
  }
}
