import { sha256 } from '../../domain/keys/hash.ts';
import type { Command } from '../../domain/ledger/command.ts';
import type { CommandOutcome } from '../inbox/outcome.ts';
import { LedgerActor, type LedgerActorParts } from '../ledger/ledger-actor.ts';

/** The shard of a ledger: the first 32 bits of SHA-256("v1|" + ledger id), modulo the number of shards. */
export function shardOf(ledgerId: string, shardCount: number): number {
  return sha256(`v1|${ledgerId}`).readUInt32BE(0) % shardCount;
}

/** The ledgers of one shard that are in memory on this node. */
export class Shard {
  readonly #parts: LedgerActorParts;
  readonly #onLoad: () => void;
  readonly #ledgers = new Map<string, LedgerActor>();

  /** `onLoad` is called for each ledger that is loaded. */
  constructor(parts: LedgerActorParts, onLoad: () => void) {
    this.#parts = parts;
    this.#onLoad = onLoad;
  }

  get size(): number {
    return this.#ledgers.size;
  }

  /** Whether the ledger is in memory and accepts commands. */
  has(ledgerId: string): boolean {
    return this.#ledgers.get(ledgerId)?.stopped === false;
  }

  submit(command: Command): Promise<CommandOutcome> {
    return this.#ledger(command.ledgerId).submit(command);
  }

  /** See LedgerActor. */
  readBarrier(ledgerId: string): Promise<number> {
    return this.#ledger(ledgerId).readBarrier();
  }

  #ledger(ledgerId: string): LedgerActor {
    let ledger = this.#ledgers.get(ledgerId);
    if (ledger === undefined || ledger.stopped) {
      ledger = new LedgerActor(ledgerId, this.#parts);
      this.#ledgers.set(ledgerId, ledger);
      this.#onLoad();
    }
    return ledger;
  }

  /** The number of waiting commands of all ledgers. */
  get waiting(): number {
    let sum = 0;
    for (const ledger of this.#ledgers.values()) sum += ledger.waiting;
    return sum;
  }

  /** Removes ledgers that had no command since `before` (ms since 1970), and stopped ones. */
  passivate(before: number): void {
    for (const [ledgerId, ledger] of this.#ledgers) {
      const { idleSince } = ledger;
      const isIdle = idleSince !== null && idleSince <= before;
      if (ledger.stopped || (isIdle && ledger.passivate())) this.#ledgers.delete(ledgerId);
    }
  }

  /** Removes all ledgers, each once its commands are answered. Nothing may be submitted any more. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#ledgers.values(), (ledger) => ledger.close()));
    this.#ledgers.clear();
  }
}
