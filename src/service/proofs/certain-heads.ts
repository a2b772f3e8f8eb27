import { type Clock, sleep } from '../../runtime/clock/clock.ts';
import type { Head, LedgerStore } from '../../store/ledger-store.ts';

/** Reads of one ledger's certain head begin at least so far apart, ms: each settles what is being written. */
const restMs = 100;

interface Reading {
  readonly startedAt: number;
  readonly ended: Promise<Head | null>;
  next: Promise<Head | null> | null;
}

/** Reads certain heads, for each ledger one at a time. Callers that come meanwhile share the next read. */
export class CertainHeads {
  readonly #store: Pick<LedgerStore, 'certainHead'>;
  readonly #clock: Clock;
  readonly #readings = new Map<string, Reading>();

  constructor(store: Pick<LedgerStore, 'certainHead'>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The number of certain events of a ledger, by a read that begins after this call. */
  async size(ledgerId: string): Promise<number> {
    return ((await this.#head(ledgerId))?.seq ?? -1) + 1;
  }

  #head(ledgerId: string): Promise<Head | null> {
    const reading = this.#readings.get(ledgerId);
    if (reading === undefined) return this.#start(ledgerId);
    reading.next ??= this.#startAfter(ledgerId, reading);
    return reading.next;
  }

  async #startAfter(ledgerId: string, { ended, startedAt }: Reading): Promise<Head | null> {
    await ended.catch(() => {});
    const rest = Math.min(restMs, startedAt + restMs - this.#clock.now());
    if (rest > 0) await sleep(this.#clock, rest);
    return this.#start(ledgerId);
  }

  #start(ledgerId: string): Promise<Head | null> {
    const ended = this.#store.certainHead(ledgerId);
    const reading: Reading = { startedAt: this.#clock.now(), ended, next: null };
    this.#readings.set(ledgerId, reading);
    const forget = () => {
      // Until then, a caller waits for the time between reads to end.
      this.#clock.after(restMs, () => {
        if (this.#readings.get(ledgerId) === reading && reading.next === null) this.#readings.delete(ledgerId);
      });
    };
    ended.then(forget, forget);
    return ended;
  }
}
