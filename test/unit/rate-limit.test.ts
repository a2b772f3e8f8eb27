import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunningCall } from '../../src/rpc/call/running-call.ts';
import { addressKey, createCallRates } from '../../src/rpc/pipeline/call-rates.ts';
import { createRateLimiter } from '../../src/rpc/pipeline/rate-limit.ts';

const limit = { name: 'call', perSecond: 10, burst: 3 };

describe('token bucket', () => {
  it('gives its burst at once, then one token each tenth of a second', () => {
    const limiter = createRateLimiter(limit, 10);
    expect([0, 0, 0].map((at) => limiter.take('a', at))).toEqual([null, null, null]);
    expect(limiter.take('a', 0)).toEqual({
      retryAfterS: 1,
      rateLimit: '"call";r=0;t=1',
      rateLimitPolicy: '"call";q=3;w=1',
    });
    expect(limiter.take('a', 100)).toBe(null);
    expect(limiter.take('a', 199)).not.toBe(null);
  });

  it('one key does not use up another', () => {
    const limiter = createRateLimiter({ ...limit, burst: 1 }, 10);
    expect([limiter.take('a', 0), limiter.take('b', 0)]).toEqual([null, null]);
    expect(limiter.take('a', 0)).not.toBe(null);
  });

  it('says how long to wait at slow rates', () => {
    const limiter = createRateLimiter({ name: 'create', perSecond: 0.1, burst: 1 }, 10);
    limiter.take('a', 0);
    expect(limiter.take('a', 0)?.retryAfterS).toBe(10);
    expect(limiter.take('a', 4_000)?.retryAfterS).toBe(6);
  });

  it('forgets the key not seen for longest, and no other', () => {
    const limiter = createRateLimiter({ ...limit, perSecond: 0.001, burst: 1 }, 2);
    limiter.take('old', 0);
    limiter.take('kept', 0);
    limiter.take('kept', 1);
    limiter.take('new', 2);
    expect(limiter.take('kept', 3)).not.toBe(null);
    expect(limiter.take('old', 3)).toBe(null);
  });

  it('rate 0 never limits', () => {
    const limiter = createRateLimiter({ ...limit, perSecond: 0, burst: 0 }, 2);
    expect(Array.from({ length: 100 }, () => limiter.take('a', 0)).every((limited) => limited === null)).toBe(true);
  });

  it('over any time gives no more than burst and rate, also when the clock stands', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(300), { maxLength: 200 }), (stepsMs) => {
        const limiter = createRateLimiter(limit, 10);
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

describe('calls beyond their rate', () => {
  const size = { perSecond: 1, burst: 2 };

  /** Whether calls of one key, all at the same moment, were let in, and whether those turned away are recorded. */
  function admitted(count: number, isAppend: boolean): string[] {
    const rates = createCallRates({ create: size, append: size, call: size });
    return Array.from({ length: count }, () => {
      const call = { caller: { apiKeyId: 'key' }, endpoint: { isAppend }, headers: [], isRecorded: true };
      try {
        rates.admit(call as unknown as RunningCall, () => '192.0.2.7', 0);
        return 'in';
      } catch {
        return call.isRecorded ? 'recorded' : 'not recorded';
      }
    });
  }

  it.each([true, false])('are recorded up to that rate, and beyond it no more (append: %s)', (isAppend) => {
    expect(admitted(6, isAppend)).toEqual(['in', 'in', 'recorded', 'recorded', 'not recorded', 'not recorded']);
  });
});

describe('addresses', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('%s counts as %s', (address, key) => {
    expect(addressKey(address)).toBe(key);
  });
});
