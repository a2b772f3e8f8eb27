/**
 * Token buckets by key. A bucket holds at most `burst` tokens and gets `perSecond` new ones. A call takes one token. If
 * there are too many buckets, the least recently used ones are forgotten, so memory is bounded.
 */
export interface RateLimiter {
  /**
   * Takes one token from the key's bucket. `nowMs` is the time of any clock that does not go back. Returns null if a
   * token was taken.
   */
  take(key: string, nowMs: number): RateLimited | null;
  /** Takes tokens for work that is done already. The bucket may go below zero. */
  charge(key: string, tokens: number, nowMs: number): void;
}

/** What a caller is told if the bucket is empty. */
export interface RateLimited {
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

interface RateLimit extends BucketSize {
  /** The policy's name, which callers see. */
  readonly name: string;
}

interface Bucket {
  tokens: number;
  filledMs: number;
}

const unlimited: RateLimiter = { take: () => null, charge: () => {} };

/** Makes a limiter with its own buckets, at most `keysMax` of them. */
export function createRateLimiter(limit: RateLimit, keysMax: number): RateLimiter {
  if (limit.perSecond === 0) return unlimited;
  const { name, perSecond, burst } = limit;
  const buckets = new Map<string, Bucket>();
  const rateLimitPolicy = `"${name}";q=${burst};w=${Math.max(1, Math.ceil(burst / perSecond))}`;

  /** Returns the key's bucket, refilled up to `nowMs`. */
  const filled = (key: string, nowMs: number): Bucket => {
    let bucket = buckets.get(key);
    if (bucket === undefined) {
      bucket = { tokens: burst, filledMs: nowMs };
      if (buckets.size >= keysMax) forgetOldest(buckets);
    } else {
      const elapsedMs = Math.max(0, nowMs - bucket.filledMs);
      bucket.tokens = Math.min(burst, bucket.tokens + (elapsedMs * perSecond) / 1000);
      bucket.filledMs = nowMs;
      // Moved to the end: the map is ordered by last use.
      buckets.delete(key);
    }
    buckets.set(key, bucket);
    return bucket;
  };

  return {
    take(key, nowMs) {
      const bucket = filled(key, nowMs);
      if (bucket.tokens >= 1) {
        bucket.tokens -= 1;
        return null;
      }
      const retryAfterS = Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond));
      return { retryAfterS, rateLimit: `"${name}";r=0;t=${retryAfterS}`, rateLimitPolicy };
    },
    charge(key, tokens, nowMs) {
      filled(key, nowMs).tokens -= tokens;
    },
  };
}

function forgetOldest(buckets: Map<string, Bucket>): void {
  const oldest = buckets.keys().next();
  if (!oldest.done) buckets.delete(oldest.value);
}
