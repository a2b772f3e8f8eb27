import type { LedgerStore } from '../store/ledger-store.ts';
import { mastersInMemoryMax } from './bounds.ts';
import { MasterActor } from './master-actor.ts';

/** The masters of one ledger that are in memory; those used longest ago leave first. */
export class LoadedMasters {
  readonly #store: LedgerStore;
  readonly #ledgerId: string;
  readonly #masters = new Map<string, MasterActor>();

  constructor(store: LedgerStore, ledgerId: string) {
    this.#store = store;
    this.#ledgerId = ledgerId;
  }

  /** From memory; null for one that has to be loaded. */
  held(masterId: string): MasterActor | null {
    const held = this.#masters.get(masterId);
    if (held === undefined) return null;
    this.#remember(held);
    return held;
  }

  /** From the store. */
  async load(masterId: string): Promise<MasterActor> {
    const loaded = await MasterActor.load(this.#store, this.#ledgerId, masterId);
    this.#remember(loaded);
    return loaded;
  }

  /** Puts it at the end of the order in which masters leave. */
  #remember(master: MasterActor): void {
    this.#masters.delete(master.masterId);
    this.#masters.set(master.masterId, master);
  }

  /** Lets those go that are too many. Not while a turn is under way. */
  trim(): void {
    for (const [masterId, master] of this.#masters) {
      if (this.#masters.size <= mastersInMemoryMax) return;
      void master.saveWhenLeaving();
      this.#masters.delete(masterId);
    }
  }

  async saveWhenLeaving(): Promise<void> {
    await Promise.all(Array.from(this.#masters.values(), (master) => master.saveWhenLeaving()));
  }
}
