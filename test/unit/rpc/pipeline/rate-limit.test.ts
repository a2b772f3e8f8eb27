import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RateLimiter } from '../../../../src/rpc/pipeline/rate-limit.ts';

const limit = { perSecond: 10, burst: 3 };

describe('a token bucket', () => {
  it('gives its burst at once, then one token each tenth of a second', () => {
    const limiter = new RateLimiter('call', limit, 10);
    expect([0, 0, 0].map((at) => limiter.take('a', at))).toEqual([null, null, null]);
    expect(limiter.take('a', 0)).toEqual({
      retryAfterMs: 100,
      retryAfterS: 1,
      rateLimit: '"call";r=0;t=1',
      rateLimitPolicy: '"call";q=3;w=1',
    });
    expect(limiter.take('a', 100)).toBe(null);
    expect(limiter.take('a', 199)).not.toBe(null);
  });

  it('keeps the tokens of each key apart', () => {
    const limiter = new RateLimiter('call', { ...limit, burst: 1 }, 10);
    expect([limiter.take('a', 0), limiter.take('b', 0)]).toEqual([null, null]);
    expect(limiter.take('a', 0)).not.toBe(null);
  });

  it('returns how long to wait at slow rates', () => {
    const limiter = new RateLimiter('create', { perSecond: 0.1, burst: 1 }, 10);
    limiter.take('a', 0);
    expect(limiter.take('a', 0)?.retryAfterS).toBe(10);
    expect(limiter.take('a', 4_000)?.retryAfterS).toBe(6);
  });

  it('forgets the least recently used key, and no other', () => {
    const limiter = new RateLimiter('call', { ...limit, perSecond: 0.001, burst: 1 }, 2);
    limiter.take('old', 0);
    limiter.take('kept', 0);
    limiter.take('kept', 1);
    limiter.take('new', 2);
    expect(limiter.take('kept', 3)).not.toBe(null);
    expect(limiter.take('old', 3)).toBe(null);
  });

  it('never limits with rate 0', () => {
    const limiter = new RateLimiter('call', { ...limit, perSecond: 0, burst: 0 }, 2);
    expect(Array.from({ length: 100 }, () => limiter.take('a', 0)).every((limited) => limited === null)).toBe(true);
  });

  it('may be charged below zero, and the next calls wait for it', () => {
    const limiter = new RateLimiter('call', limit, 10);
    limiter.charge('a', 13, 0);
    expect(limiter.take('a', 0)?.retryAfterS).toBe(2);
    expect(limiter.take('a', 1_099)).not.toBe(null);
    expect(limiter.take('a', 1_100)).toBe(null);
    expect(limiter.take('b', 0)).toBe(null);
  });

  it('gives many tokens at once if it owes none, and none until it has them', () => {
    const limiter = new RateLimiter('call', limit, 10);
    expect(limiter.takeMore('a', 13, 0)).toBe(null);
    expect(limiter.takeMore('a', 1, 900)?.retryAfterS).toBe(1);
    expect(limiter.takeMore('a', 1, 1_000)).toBe(null);
  });

  it('gives no more than burst and rate over any time, also when the clock stands still', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(300), { maxLength: 200 }), (stepsMs) => {
        const limiter = new RateLimiter('call', limit, 10);
        let now = 0;
        let taken = 0;
        for (const step of stepsMs) {
          now += step;
          if (limiter.take('a', now) === null) taken += 1;
        }
        return taken <= limit.burst + (now * limit.perSecond) / 1000 + 1e-6;
      }),
    );
  });
});
