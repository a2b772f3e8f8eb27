import { type Clock, sleep } from '../../runtime/clock/clock.ts';
import type { Head, LedgerStore } from '../../store/ledger-store.ts';
import { unreadableRecord } from '../../store/unreadable-record.ts';

/**
 * A read settles what is being written. So after the start of one the next waits for ten times as long as it took, but
 * no longer than this, ms. A store that answers at once is asked at once.
 */
const restMaxMs = 100;
const restFactor = 10;

interface Reading {
  readonly ended: Promise<Head | null>;
  /** Until when the next one waits. */
  restUntil: number;
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

  /**
   * The number of certain events of a ledger, by a read that begins after this call. Throws UnreadableRecord if the
   * head is damaged: its hash is empty then, and its seq is no certain one that a checkpoint may be signed over.
   */
  async size(ledgerId: string): Promise<number> {
    const head = await this.#head(ledgerId);
    if (head?.hash === '') throw unreadableRecord('head', ledgerId, 'where the ledger ends cannot be read');
    return (head?.seq ?? -1) + 1;
  }

  #head(ledgerId: string): Promise<Head | null> {
    const reading = this.#readings.get(ledgerId);
    if (reading === undefined) return this.#start(ledgerId);
    reading.next ??= this.#startAfter(ledgerId, reading);
    return reading.next;
  }

  async #startAfter(ledgerId: string, reading: Reading): Promise<Head | null> {
    await reading.ended.catch(() => {});
    const restMs = Math.min(restMaxMs, reading.restUntil - this.#clock.now());
    if (restMs > 0) await sleep(this.#clock, restMs);
    return this.#start(ledgerId);
  }

  #start(ledgerId: string): Promise<Head | null> {
    const startedAt = this.#clock.now();
    const ended = this.#store.certainHead(ledgerId);
    const reading: Reading = { ended, restUntil: startedAt, next: null };
    this.#readings.set(ledgerId, reading);
    const rest = () => {
      const restMs = Math.min(restMaxMs, (this.#clock.now() - startedAt) * restFactor);
      reading.restUntil = startedAt + restMs;
      const forget = () => {
        if (this.#readings.get(ledgerId) === reading && reading.next === null) this.#readings.delete(ledgerId);
      };
      if (restMs === 0) forget();
      // Until then, a caller waits for the rest to end.
      else this.#clock.after(restMs, forget);
    };
    ended.then(rest, rest);
    return ended;
  }
}
