import { RecentMap } from '../../runtime/collections/recent-map.ts';

export interface RateLimited {
  /** Milliseconds until the next token, at least 1. */
  readonly retryAfterMs: number;
  /** Whole seconds until the next token, at least 1. */
  readonly retryAfterS: number;
  /** Value of the header RateLimit (draft-ietf-httpapi-ratelimit-headers). */
  readonly rateLimit: string;
  /** Value of the header RateLimit-Policy (same draft): quota and window of the bucket, in seconds. */
  readonly rateLimitPolicy: string;
}

/** A token bucket: tokens added a second, and tokens held at most. perSecond 0: no limit. */
export interface BucketSize {
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  filledMs: number;
}

/** Token buckets by key, at most `keysMax` of them: the least recently used one is forgotten for a new one. */
export class RateLimiter {
  /** The policy's name, which callers see. */
  readonly #name: string;
  readonly #size: BucketSize;
  readonly #buckets: RecentMap<string, Bucket>;

  constructor(name: string, size: BucketSize, keysMax: number) {
    this.#name = name;
    this.#size = size;
    this.#buckets = new RecentMap(keysMax);
  }

  /** Returns null if the bucket has so many tokens. `nowMs` is the time of any clock that does not go back. */
  check(key: string, tokens: number, nowMs: number): RateLimited | null {
    if (this.#size.perSecond === 0) return null;
    const bucket = this.#filled(key, nowMs);
    return bucket.tokens >= tokens ? null : this.#limited(bucket);
  }

  /** Returns null if a token was taken. */
  take(key: string, nowMs: number): RateLimited | null {
    const limited = this.check(key, 1, nowMs);
    if (limited === null) this.charge(key, 1, nowMs);
    return limited;
  }

  /** The same for several tokens at once, if the bucket owes none. It may go below zero. */
  takeMore(key: string, tokens: number, nowMs: number): RateLimited | null {
    const limited = this.check(key, 0, nowMs);
    if (limited === null) this.charge(key, tokens, nowMs);
    return limited;
  }

  #limited({ tokens }: Bucket): RateLimited {
    const { perSecond, burst } = this.#size;
    const retryAfterMs = Math.max(1, Math.ceil(((1 - tokens) / perSecond) * 1000));
    const retryAfterS = Math.ceil(retryAfterMs / 1000);
    const rateLimitPolicy = `"${this.#name}";q=${burst};w=${Math.max(1, Math.ceil(burst / perSecond))}`;
    return { retryAfterMs, retryAfterS, rateLimit: `"${this.#name}";r=0;t=${retryAfterS}`, rateLimitPolicy };
  }

  /** Takes tokens, also for work that is done already: the bucket may go below zero. A negative number gives back. */
  charge(key: string, tokens: number, nowMs: number): void {
    if (this.#size.perSecond > 0) this.#filled(key, nowMs).tokens -= tokens;
  }

  #filled(key: string, nowMs: number): Bucket {
    const { perSecond, burst } = this.#size;
    let bucket = this.#buckets.get(key);
    if (bucket?.filledMs === nowMs) return bucket;
    if (bucket === undefined) {
      bucket = { tokens: burst, filledMs: nowMs };
    } else {
      const elapsedMs = Math.max(0, nowMs - bucket.filledMs);
      bucket.tokens = Math.min(burst, bucket.tokens + (elapsedMs * perSecond) / 1000);
      bucket.filledMs = nowMs;
    }
    this.#buckets.set(key, bucket);
    return bucket;
  }
}
