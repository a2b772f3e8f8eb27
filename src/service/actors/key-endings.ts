import type { ActorKeys, KeyLife, SigningKeys } from '../../actors/ledger/signing-keys.ts';
import { LedgerError } from '../../domain/errors.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import { actorFreshMs } from './identities.ts';

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
  readonly #keys: Pick<SigningKeys, 'fresh' | 'read'>;
  readonly #clock: Pick<Clock, 'after'>;
  /** By actor, so that the many ends of one actor cost the events of others nothing. */
  readonly #endings = new Map<string, Set<Ending>>();

  constructor(keys: Pick<SigningKeys, 'fresh' | 'read'>, clock: Pick<Clock, 'after'>) {
    this.#keys = keys;
    this.#clock = clock;
  }

  fresh(actorId: string): ActorKeys | undefined {
    return this.#keys.fresh(actorId);
  }

  read(actorId: string): Promise<ActorKeys> {
    return this.#keys.read(actorId);
  }

  /**
   * Runs `store`, which stores the end of a key. The end counts also while `store` runs, and after it unless it has
   * certainly failed: as long as keys that were read before it was stored may be used.
   */
  async during<T>(actorId: string, ending: Ending, store: () => Promise<T>): Promise<T> {
    const endings = this.#endings.get(actorId) ?? new Set();
    this.#endings.set(actorId, endings.add(ending));
    const forget = () => {
      if (endings.delete(ending) && endings.size === 0) this.#endings.delete(actorId);
    };
    try {
      const stored = await store();
      this.#clock.after(actorFreshMs + 1, forget);
      return stored;
    } catch (error) {
      if (error instanceof LedgerError && error.code !== 'outcome_unknown') forget();
      throw error;
    }
  }

  withEnds(actorId: string, keys: ActorKeys): ActorKeys {
    let ended: Map<string, KeyLife> | null = null;
    for (const { kid, revokedAt } of this.#endings.get(actorId) ?? []) {
      const life = (ended ?? keys).get(kid);
      if (life === undefined || (life.revokedAt !== null && life.revokedAt <= revokedAt)) continue;
      ended ??= new Map(keys);
      ended.set(kid, { ...life, revokedAt });
    }
    return ended ?? keys;
  }
}
