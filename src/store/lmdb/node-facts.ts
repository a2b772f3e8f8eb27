import { LedgerError } from '../../domain/errors.ts';
import { OutcomeUnknown } from '../ledger-store.ts';
import type { Commits } from './commits.ts';
import { textKey } from './keys.ts';
import type { Tables } from './tables.ts';

/**
 * What a node remembers of itself and of its directory, by name: small texts that are neither chain nor records.
 * Apart from the store's own facts, whose keys are no text keys.
 */
export class NodeFacts {
  readonly #tables: Tables;
  readonly #commits: Commits;

  constructor(tables: Tables, commits: Commits) {
    this.#tables = tables;
    this.#commits = commits;
  }

  get(name: string): string | null {
    this.#commits.checkReadable();
    return this.#tables.facts.get(textKey(name)) ?? null;
  }

  /** Durable when it resolves. `unavailable`: may or may not have been written. */
  async put(name: string, value: string): Promise<void> {
    await this.#write(() => this.#tables.facts.batch(() => this.#tables.facts.put(textKey(name), value)));
  }

  /** True if there was none and the value is durable now; false if another one stands there. */
  async putIfAbsent(name: string, value: string): Promise<boolean> {
    const key = textKey(name);
    return this.#write(() => this.#tables.facts.ifNoExists(key, () => this.#tables.facts.put(key, value)));
  }

  async #write(start: () => Promise<boolean>): Promise<boolean> {
    try {
      return await this.#commits.write(start);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      throw new LedgerError('unavailable', 'The store did not say whether the fact was written.', {}, error);
    }
  }
}
