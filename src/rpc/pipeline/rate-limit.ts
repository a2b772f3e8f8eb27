/**
 * Token buckets by key. A bucket holds `burst` tokens and gets `perSecond` new ones; a call takes one. The buckets of
 * the keys not seen for longest are forgotten first, so that memory is bounded whatever callers there are.
 */
export interface RateLimiter {
  /** Takes one token of the key's bucket; `nowMs` is any clock that does not go back. null: taken. */
  take(key: string, nowMs: number): RateLimited | null;
  /** Takes tokens for what is done already: the bucket may hold less than none afterwards. */
  charge(key: string, tokens: number, nowMs: number): void;
}

/** What a caller hears who has no token left. */
export interface RateLimited {
  /** Whole seconds until the next token, at least 1. */
  readonly retryAfterS: number;
  /** Value of the header RateLimit (draft-ietf-httpapi-ratelimit-headers). */
  readonly rateLimit: string;
  /** Value of the header RateLimit-Policy (same draft): quota and window of the bucket, in seconds. */
  readonly rateLimitPolicy: string;
}

export interface RateLimit {
  /** Shown to callers as the policy's name. */
  readonly name: string;
  /** 0 switches the limit off. */
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  filledMs: number;
}

const unlimited: RateLimiter = { take: () => null, charge: () => {} };

/** A limiter of its own buckets. `keysMax` bounds how many are kept. */
export function createRateLimiter(limit: RateLimit, keysMax: number): RateLimiter {
  if (limit.perSecond === 0) return unlimited;
  const { name, perSecond, burst } = limit;
  const buckets = new Map<string, Bucket>();
  const rateLimitPolicy = `"${name}";q=${burst};w=${Math.max(1, Math.ceil(burst / perSecond))}`;

  /** The key's bucket as it is now. */
  const filled = (key: string, nowMs: number): Bucket => {
    let bucket = buckets.get(key);
    if (bucket === undefined) {
      bucket = { tokens: burst, filledMs: nowMs };
      if (buckets.size >= keysMax) forgetOldest(buckets);
    } else {
      const elapsedMs = Math.max(0, nowMs - bucket.filledMs);
      bucket.tokens = Math.min(burst, bucket.tokens + (elapsedMs * perSecond) / 1000);
      bucket.filledMs = nowMs;
      // Put behind all others: the order of the map is the order of last use.
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
