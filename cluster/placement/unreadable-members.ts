/** Ids that are remembered, so that each is told once. */
const toldMax = 1_000;
/** What of an id stands in the log: whoever may write to Redis chose it. */
const shownMaxChars = 128;

/** The announcements in Redis that no node can read, as they were when members were listed last. */
export class UnreadableMembers {
  readonly #warn: (sentence: string) => void;
  readonly #told = new Set<string>();
  #count = 0;

  constructor(warn: (sentence: string) => void) {
    this.#warn = warn;
  }

  get count(): number {
    return this.#count;
  }

  /** Takes all that could not be read this time; warns of those that it has not warned of before. */
  note(ids: readonly string[]): void {
    this.#count = ids.length;
    for (const id of ids) {
      if (this.#told.has(id) || this.#told.size >= toldMax) continue;
      this.#told.add(id);
      const shown = JSON.stringify(id.slice(0, shownMaxChars));
      this.#warn(`the announcement of node ${shown} in Redis is passed over: it names no host:port, or cannot be read`);
    }
  }
}
