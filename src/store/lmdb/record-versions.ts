import type { Commits } from './commits.ts';
import type { Tables } from './tables.ts';

/** Versions set aside at a time: one write of the reservation for as many puts. */
const BLOCK = 2 ** 20;
const FACT = Buffer.from('record-versions');

/**
 * Gives out record versions, each once in the life of the environment: a record that was removed and made anew must
 * not get a version that somebody still holds. Numbers are set aside in blocks; a process starts behind the last block.
 */
export class RecordVersions {
  readonly #tables: Tables;
  readonly #commits: Commits;
  #next: number;
  #reserved: number;

  constructor(tables: Tables, commits: Commits) {
    this.#tables = tables;
    this.#commits = commits;
    this.#next = Number(tables.facts.get(FACT) ?? 1);
    this.#reserved = this.#next;
  }

  /** A number never given out before. A reservation is queued ahead of any write that the caller makes afterwards, so it is durable no later. */
  next(): number {
    if (this.#next === this.#reserved) this.#reserve();
    return this.#next++;
  }

  #reserve(): void {
    this.#reserved += BLOCK;
    const { facts } = this.#tables;
    const reserved = String(this.#reserved);
    const written = this.#commits.write(() => facts.batch(() => facts.put(FACT, reserved)));
    // A failure breaks the whole environment, and with it the write that would have used the number.
    written.catch(() => {});
  }
}
