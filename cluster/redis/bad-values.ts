/** The kinds of values that nodes keep in Redis. The names are values of a metric's label. */
export type RedisValueKind = 'member' | 'order' | 'lease' | 'news';

/** Called each time that a node reads a value in Redis that no node has written. `key` is its place in Redis. */
export type MetBadValue = (kind: RedisValueKind, key: string) => void;

/** The log names at most this many keys. */
const keysNamedMax = 1_000;
const keyCharactersMax = 200;

/** Counts the ignored values in Redis, which no node has written. Logs each key once. */
export class BadValues {
  readonly counts: Record<RedisValueKind, number> = { member: 0, order: 0, lease: 0, news: 0 };
  readonly #warn: (sentence: string) => void;
  readonly #named = new Set<string>();

  constructor(warn: (sentence: string) => void) {
    this.#warn = warn;
  }

  readonly met: MetBadValue = (kind, key) => {
    this.counts[kind] += 1;
    const name = JSON.stringify(key.slice(0, keyCharactersMax));
    if (this.#named.has(name) || this.#named.size >= keysNamedMax) return;
    this.#named.add(name);
    this.#warn(
      `Redis holds something at ${name} that no node has written (${kind}); it is passed over: find out who writes there`,
    );
  };
}
