import { mastersInMemoryMax } from '../bounds.ts';
import { MasterActor } from './master-actor.ts';
import type { SavingParts } from './snapshot-saving.ts';

/** The masters of one ledger that are in memory. The least recently used one leaves first. */
export class LoadedMasters {
  readonly #parts: SavingParts;
  readonly #ledgerId: string;
  readonly #masters = new Map<string, MasterActor>();

  constructor(parts: SavingParts, ledgerId: string) {
    this.#parts = parts;
    this.#ledgerId = ledgerId;
  }

  async get(masterId: string): Promise<MasterActor> {
    const held = this.#masters.get(masterId);
    const loaded = held ?? (await MasterActor.load(this.#parts, this.#ledgerId, masterId));
    // Moves it to the end of the order in which masters leave.
    this.#masters.delete(masterId);
    this.#masters.set(masterId, loaded);
    return loaded;
  }

  /** Call it only between batches. */
  trim(): void {
    for (const [masterId, master] of this.#masters) {
      if (this.#masters.size <= mastersInMemoryMax) return;
      void master.saveWhenLeaving();
      this.#masters.delete(masterId);
    }
  }

  async saveWhenLeaving(beginBefore?: number): Promise<void> {
    await Promise.all(Array.from(this.#masters.values(), (master) => master.saveWhenLeaving(beginBefore)));
  }
}
