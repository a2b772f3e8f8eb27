import type { Commits } from '../commits.ts';
import type { Tables } from '../tables.ts';

/** Versions reserved at a time, so that one write of the reservation serves for as many puts. */
const BLOCK = 2 ** 20;
const FACT = Buffer.from('record-versions');

/**
 * Gives out record versions, each only once in the life of the environment. A record that was removed and made anew
 * must not get a version that a caller still holds. Versions are reserved in blocks, and a process starts after the
 * last reserved block.
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

  /**
   * Returns a version that was never given out. A reservation is queued before any write that the caller makes
   * afterwards, so that the reservation is durable no later than that write.
   */
  next(): number {
    if (this.#next === this.#reserved) this.#reserve();
    return this.#next++;
  }

  #reserve(): void {
    this.#reserved += BLOCK;
    const { facts } = this.#tables;
    const reserved = String(this.#reserved);
    const written = this.#commits.write(() => facts.batch(() => facts.put(FACT, reserved)));
    // Not awaited: a failure breaks the whole environment, and with it the write that would use the version.
    written.catch(() => {});
  }
}
