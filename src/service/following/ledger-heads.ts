import type { CommitListener } from '../../actors/ledger/commit-listener.ts';
import { type Clock, every } from '../../runtime/clock/clock.ts';
import type { Log } from '../../runtime/telemetry/log.ts';
import type { LedgerEntry, LedgerStore } from '../../store/ledger-store.ts';

/** How often the store is asked for the head of a ledger of which nobody tells. */
const askEveryMs = 1_000;
const asksAtOnceMax = 32;
/** A node with more silent ledgers asks for each one less often. */
const asksARoundMax = 1_000;

/**
 * How a node learned of a head: by a commit of its own, by asking the store once the owner of the ledger told of it, or
 * by asking the store at intervals.
 */
export type HeadSource = 'own' | 'peer' | 'store';

export interface HeadWatch extends Disposable {
  /** The newest seq that is certainly durable; -1 if there is none. */
  readonly seq: number;
  /** When this node learned of it (monotonic, ms). */
  readonly learnedMs: number;
}

/** The heads of ledgers between nodes. Messages may get lost. A node that stands alone has none. */
export interface RemoteHeads {
  /** This node wants to hear of the ledger from now on, until the result is disposed of. */
  subscribe(ledgerId: string): Disposable;
  /** `heard` is called for each message of another node. Call it once. */
  listen(heard: (ledgerId: string, seq: number) => void): void;
  /** Tells the nodes that want to hear of the ledger that this node has committed. */
  tell(ledgerId: string, seq: number): void;
}

interface LedgerHeadsParts {
  readonly ledgers: Pick<LedgerStore, 'head'>;
  readonly clock: Clock;
  readonly log: Log;
  /** null: this node writes all ledgers, so that it hears of each commit. */
  readonly remote: RemoteHeads | null;
  monotonicMs(): number;
  /** Called for each new head of a watched ledger. */
  learned(source: HeadSource): void;
}

interface Watched {
  seq: number;
  learnedMs: number;
  /** When a commit last told of the ledger, or another node told of a head that the store had (monotonic, ms). */
  heardMs: number;
  /** Another node has told of a newer head since the store was last asked. */
  isHinted: boolean;
  /** The store must be asked: a write may have landed of which nobody told. */
  isInDoubt: boolean;
  isAsked: boolean;
  readonly subscription: Disposable | null;
  readonly listeners: Set<() => void>;
}

/**
 * The newest seq of each watched ledger. This node's commits tell of it. Where another node tells of a commit, the
 * store is asked; where all are silent, it is asked every second. It is a wake-up alone: the events themselves are read
 * from the store.
 */
export class LedgerHeads implements Pick<CommitListener, 'committed' | 'batchInDoubt' | 'claimed'>, Disposable {
  readonly #parts: LedgerHeadsParts;
  readonly #watched = new Map<string, Watched>();
  /** Ledgers for which the store is to be asked in this round. */
  readonly #due = new Map<string, Watched>();
  /** null while no ledger is watched. */
  #cancelRounds: (() => void) | null = null;
  #asking = 0;

  constructor(parts: LedgerHeadsParts) {
    this.#parts = parts;
    parts.remote?.listen((ledgerId, seq) => this.#hinted(ledgerId, seq));
  }

  /** Watches a ledger from its present head on. `advanced` is called after each change of `seq`; it must not throw. */
  async watch(ledgerId: string, advanced: () => void): Promise<HeadWatch> {
    const { ledgers, remote, monotonicMs } = this.#parts;
    let watched = this.#watched.get(ledgerId);
    if (watched === undefined) {
      const subscription = remote?.subscribe(ledgerId) ?? null;
      const nowMs = monotonicMs();
      const listeners = new Set<() => void>();
      const asked = { isInDoubt: true, isHinted: false, isAsked: false };
      watched = { seq: -1, learnedMs: nowMs, heardMs: 0, ...asked, subscription, listeners };
      this.#watched.set(ledgerId, watched);
    }
    watched.listeners.add(advanced);
    this.#cancelRounds ??= every(this.#parts.clock, askEveryMs, () => this.#askRound());
    const unwatch = (): void => this.#unwatch(ledgerId, watched, advanced);
    try {
      if (watched.isInDoubt) {
        const head = await ledgers.head(ledgerId);
        watched.isInDoubt = false;
        if (head !== null) this.#advance(watched, head.seq, 'store');
      }
    } catch (error) {
      unwatch();
      throw error;
    }
    return {
      get seq() {
        return watched.seq;
      },
      get learnedMs() {
        return watched.learnedMs;
      },
      [Symbol.dispose]: unwatch,
    };
  }

  committed(ledgerId: string, entries: readonly LedgerEntry[]): void {
    const last = entries.at(-1);
    if (last === undefined) return;
    this.learn(ledgerId, last.seq, 'own');
    this.#parts.remote?.tell(ledgerId, last.seq);
  }

  batchInDoubt(ledgerId: string): void {
    const watched = this.#watched.get(ledgerId);
    if (watched === undefined) return;
    watched.isInDoubt = true;
    void this.#ask(ledgerId, watched);
  }

  claimed(ledgerId: string): void {
    this.batchInDoubt(ledgerId);
  }

  /** The ledger has a durable event of this seq, as the store has shown if no other source is given. */
  learn(ledgerId: string, seq: number, source: HeadSource = 'store'): void {
    const watched = this.#watched.get(ledgerId);
    if (watched === undefined) return;
    watched.heardMs = this.#parts.monotonicMs();
    this.#advance(watched, seq, source);
  }

  /** Another node says that the ledger has a newer event. No later head rests on its word: the store is asked. */
  #hinted(ledgerId: string, seq: number): void {
    const watched = this.#watched.get(ledgerId);
    if (watched === undefined || seq <= watched.seq) return;
    watched.isHinted = true;
    this.#due.set(ledgerId, watched);
    this.#askDue();
  }

  /** Returns false if the head is known already. */
  #advance(watched: Watched, seq: number, source: HeadSource): boolean {
    if (seq <= watched.seq) return false;
    this.#parts.learned(source);
    watched.seq = seq;
    watched.learnedMs = this.#parts.monotonicMs();
    for (const advanced of watched.listeners) advanced();
    return true;
  }

  #unwatch(ledgerId: string, watched: Watched, advanced: () => void): void {
    watched.listeners.delete(advanced);
    if (watched.listeners.size > 0 || this.#watched.get(ledgerId) !== watched) return;
    watched.subscription?.[Symbol.dispose]();
    this.#watched.delete(ledgerId);
    if (this.#watched.size === 0) this[Symbol.dispose]();
  }

  #askRound(): void {
    let asks = 0;
    for (const [ledgerId, watched] of [...this.#watched]) {
      // What other nodes tell of takes no place from the others.
      if (asks >= asksARoundMax) break;
      if (!watched.isInDoubt && !this.#isSilent(watched)) continue;
      // The one that was asked comes last in the next round.
      this.#watched.delete(ledgerId);
      this.#watched.set(ledgerId, watched);
      asks += 1;
      this.#due.set(ledgerId, watched);
    }
    this.#askDue();
  }

  #askDue(): void {
    for (const [ledgerId, watched] of this.#due) {
      if (this.#asking >= asksAtOnceMax) return;
      this.#due.delete(ledgerId);
      if (this.#watched.get(ledgerId) === watched) void this.#ask(ledgerId, watched);
    }
  }

  /** A node that stands alone hears of each commit. */
  #isSilent({ heardMs }: Watched): boolean {
    const { remote, monotonicMs } = this.#parts;
    return remote !== null && monotonicMs() - heardMs >= askEveryMs;
  }

  /** A failure leaves the ledger in doubt: it is asked again in the next round. */
  async #ask(ledgerId: string, watched: Watched): Promise<void> {
    if (watched.isAsked) return;
    const { isHinted } = watched;
    watched.isAsked = true;
    this.#asking += 1;
    try {
      watched.isInDoubt = false;
      watched.isHinted = false;
      const head = await this.#parts.ledgers.head(ledgerId);
      const isNew = head !== null && this.#advance(watched, head.seq, isHinted ? 'peer' : 'store');
      if (isHinted && isNew) watched.heardMs = watched.learnedMs;
    } catch (error) {
      watched.isInDoubt = true;
      this.#parts.log.debug({ err: error, ledger_id: ledgerId }, 'the head of a followed ledger cannot be read');
    } finally {
      watched.isAsked = false;
      this.#asking -= 1;
      // A head that was told meanwhile may be newer than what the store answered. If the ledger has been watched anew
      // since, its place is that of the new watch.
      if (watched.isHinted && this.#watched.get(ledgerId) === watched) this.#due.set(ledgerId, watched);
      this.#askDue();
    }
  }

  [Symbol.dispose](): void {
    this.#cancelRounds?.();
    this.#cancelRounds = null;
  }
}
