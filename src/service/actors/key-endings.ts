import type { ActorKeys, KeyLife, SigningKeys } from '../../actors/ledger/signing-keys.ts';
import { LedgerError } from '../../domain/errors.ts';

interface Ending {
  readonly kid: string;
  /** ISO. */
  readonly revokedAt: string;
}

/**
 * The keys that ledgers ask for, with the ends that are being stored. On a single node a revocation counts from before
 * it is stored: otherwise an event decided meanwhile could be dated after the key's end, and be invalid for good.
 */
export class KeyEndings implements SigningKeys {
  readonly #keys: SigningKeys;
  readonly #endings = new Set<Ending>();

  constructor(keys: SigningKeys) {
    this.#keys = keys;
  }

  fresh(actorId: string): ActorKeys | undefined {
    const known = this.#keys.fresh(actorId);
    return known === undefined ? undefined : this.#withEnds(known);
  }

  async read(actorId: string): Promise<ActorKeys> {
    return this.#withEnds(await this.#keys.read(actorId));
  }

  /**
   * Runs `store`, which stores the end of a key. The end counts also while `store` runs, and after it unless it has
   * certainly failed.
   */
  async during<T>(kid: string, revokedAt: string, store: () => Promise<T>): Promise<T> {
    const ending = { kid, revokedAt };
    this.#endings.add(ending);
    try {
      const stored = await store();
      this.#endings.delete(ending);
      return stored;
    } catch (error) {
      if (error instanceof LedgerError && error.code !== 'outcome_unknown') this.#endings.delete(ending);
      throw error;
    }
  }

  #withEnds(keys: ActorKeys): ActorKeys {
    let ended: Map<string, KeyLife> | null = null;
    for (const { kid, revokedAt } of this.#endings) {
      const life = (ended ?? keys).get(kid);
      if (life === undefined || (life.revokedAt !== null && life.revokedAt <= revokedAt)) continue;
      ended ??= new Map(keys);
      ended.set(kid, { ...life, revokedAt });
    }
    return ended ?? keys;
  }
}
