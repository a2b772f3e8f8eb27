import type { ActorKeys, KeyLife, SigningKeys } from '../../actors/signing-keys.ts';

/**
 * The keys that ledgers ask for, with the ends that are on their way to the store: on this node a revocation counts from
 * before it is stored. Otherwise an event decided meanwhile would carry a time at which its key is over, and be invalid for good.
 */
export class KeyEndings implements SigningKeys {
  readonly #keys: SigningKeys;
  /** ISO times by kid. */
  readonly #ends = new Map<string, string>();

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

  /** Stores the end of a key, which counts from `revokedAt` (ISO) on even while that takes. If it fails, the key goes on. */
  async during<T>(kid: string, revokedAt: string, store: () => Promise<T>): Promise<T> {
    const other = this.#ends.get(kid);
    this.#ends.set(kid, other !== undefined && other < revokedAt ? other : revokedAt);
    try {
      return await store();
    } finally {
      this.#ends.delete(kid);
    }
  }

  #withEnds(actor: ActorKeys): ActorKeys {
    let ended: Map<string, KeyLife> | null = null;
    for (const [kid, revokedAt] of this.#ends) {
      const life = actor.keys.get(kid);
      if (life === undefined || (life.revokedAt !== null && life.revokedAt <= revokedAt)) continue;
      ended ??= new Map(actor.keys);
      ended.set(kid, { ...life, revokedAt });
    }
    return ended === null ? actor : { keys: ended };
  }
}
