import { mapConcurrently } from '../../runtime/collections/map-concurrently.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';

export interface ScopeSeq {
  readonly seq: number;
  readonly scope: string;
}

interface ScopeList {
  readonly ledgerId: string;
  readonly scopes: readonly string[];
  /** The seq to start at, in the direction of reading. */
  readonly from: number;
  readonly descending: boolean;
  /** Seqs of one scope that are read at once. */
  readonly atOnce: number;
}

interface ScopeCursor {
  readonly scope: string;
  /** Read and not merged yet, in the direction of reading. */
  seqs: readonly number[];
  /** Where the next read begins. null at the end. */
  from: number | null;
}

const scopesAtOnceMax = 16;

/** The seqs of several scopes, merged in the order of the ledger. Reads no event. */
export class ScopeSeqs {
  readonly #store: Pick<BoundedLedgers, 'scopeSeqs'>;
  readonly #ledgerId: string;
  readonly #cursors: readonly ScopeCursor[];
  readonly #descending: boolean;
  readonly #atOnce: number;
  /** Merged and not taken yet. */
  #next: ScopeSeq[] = [];

  constructor(store: Pick<BoundedLedgers, 'scopeSeqs'>, list: ScopeList) {
    const { ledgerId, scopes, from, descending, atOnce } = list;
    this.#store = store;
    this.#ledgerId = ledgerId;
    this.#cursors = scopes.map((scope) => ({ scope, seqs: [], from }));
    this.#descending = descending;
    this.#atOnce = atOnce;
  }

  async take(count: number): Promise<readonly ScopeSeq[]> {
    if (this.#next.length === 0) await this.#merge();
    return this.#next.splice(0, count);
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) {
      const skipped = (await this.take(left)).length;
      if (skipped === 0) return;
      left -= skipped;
    }
  }

  /** Puts back the seqs that were taken last and not used. */
  putBack(rest: readonly ScopeSeq[]): void {
    this.#next = [...rest, ...this.#next];
  }

  async #merge(): Promise<void> {
    const order = (a: number, b: number): number => (this.#descending ? b - a : a - b);
    for (;;) {
      const empty = this.#cursors.filter((cursor) => cursor.seqs.length === 0 && cursor.from !== null);
      await mapConcurrently(empty, scopesAtOnceMax, (cursor) => this.#read(cursor));
      // Seqs beyond the last one read of a scope have to wait: more seqs of that scope may come before them.
      let reach: number | null = null;
      for (const { from, seqs } of this.#cursors) {
        const end = from === null ? undefined : seqs.at(-1);
        if (end !== undefined && (reach === null || order(end, reach) < 0)) reach = end;
      }
      for (const cursor of this.#cursors) {
        const beyond = reach === null ? -1 : cursor.seqs.findIndex((seq) => order(seq, reach) > 0);
        const cut = beyond === -1 ? cursor.seqs.length : beyond;
        for (const seq of cursor.seqs.slice(0, cut)) this.#next.push({ seq, scope: cursor.scope });
        cursor.seqs = cursor.seqs.slice(cut);
      }
      if (this.#next.length > 0 || reach === null) break;
    }
    this.#next.sort((a, b) => order(a.seq, b.seq));
  }

  async #read(cursor: ScopeCursor): Promise<void> {
    const { scope, from } = cursor;
    if (from === null) return;
    const page = { from, limit: this.#atOnce, descending: this.#descending };
    cursor.seqs = await this.#store.scopeSeqs(this.#ledgerId, scope, page);
    const last = cursor.seqs.length < this.#atOnce ? undefined : cursor.seqs.at(-1);
    cursor.from = last === undefined ? null : last + (this.#descending ? -1 : 1);
  }
}
