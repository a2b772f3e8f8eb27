/** What nodes keep in Redis. The names are values of a metric's label. */
export const redisValueKinds = ['member', 'order', 'lease', 'news'] as const;
export type RedisValueKind = (typeof redisValueKinds)[number];

/** Told of each value in Redis that is none of ours, each time that it is met. `key` says where it stands. */
export type MetBadValue = (kind: RedisValueKind, key: string) => void;

/** Beyond so many keys no more are named in the log; they are counted all the same. */
const keysNamedMax = 1_000;
const keyCharactersMax = 200;

/** Counts values in Redis that no node has written and that are passed over, and names each key once in the log. */
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
