import { isIPv6 } from 'node:net';
import { LedgerError } from '../../domain/errors.ts';
import { partsIn } from '../../domain/json/json-parts.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Caller } from '../../service/calls/call.ts';
import type { WalkCost } from '../../service/walking/walk.ts';
import type { RunningCall } from '../call/running-call.ts';
import { type BucketSize, type RateLimited, RateLimiter } from './rate-limit.ts';

export interface CallRateSizes {
  readonly create: BucketSize;
  readonly append: BucketSize;
  readonly call: BucketSize;
}

/** The three rate limits: anonymous creations, appends, and all other calls. */
export type CallRates = ReturnType<typeof createCallRates>;

export function createCallRates(sizes: CallRateSizes) {
  const limiter = (name: keyof CallRateSizes) => new RateLimiter(name, sizes[name], limits.rateLimitKeysMax);
  const creates = limiter('create');
  /** Two buckets: one for admitted calls, one for records of refused calls. */
  const pair = (name: keyof CallRateSizes) => ({ admitted: limiter(name), recorded: limiter(name) });
  const [appends, calls] = [pair('append'), pair('call')];
  /** For events of streams, which take nothing from the calls of the same key. */
  const streamed = limiter('append');
  return {
    /**
     * Takes one call from the caller's bucket. If the bucket is empty, throws `rate_limited` and sets the headers that
     * say when to retry. Refused calls go into the caller's access history at no more than the rate for calls, so that
     * a flood of them cannot fill the store.
     */
    admit(call: RunningCall, address: () => string, nowMs: number): void {
      const { caller, endpoint } = call;
      let limited: RateLimited | null = null;
      if (caller !== null) {
        const key = bucketOf(caller, address);
        const { admitted, recorded } = endpoint.isAppend ? appends : calls;
        limited = admitted.take(key, nowMs);
        if (limited !== null) call.isRecorded = recorded.take(key, nowMs) === null;
      } else if (endpoint.rule.createsAnonymously) {
        limited = creates.take(addressKey(address()), nowMs);
      }
      if (limited !== null) throw rateLimited(call, limited);
    },
    /**
     * Takes from the caller's bucket what it costs to read its request beyond one call, before it is read. Throws
     * `rate_limited` if the bucket owes calls already, and `payload_too_large` for too much without a credential. A
     * call that is refused here is not recorded: what it names would have to be read.
     */
    admitRequest(call: RunningCall, address: () => string, request: Uint8Array, nowMs: number): void {
      const { caller, endpoint } = call;
      const parts = partsIn(request);
      if (caller === null) checkAnonymous(request.length, parts);
      const tokens = callsToRead(parts);
      if (tokens === 0) return;
      let limited: RateLimited | null = null;
      if (caller !== null) {
        const { admitted } = endpoint.isAppend ? appends : calls;
        limited = admitted.takeMore(bucketOf(caller, address), tokens, nowMs);
      } else if (endpoint.rule.createsAnonymously) {
        limited = creates.takeMore(addressKey(address()), tokens, nowMs);
      }
      if (limited === null) return;
      call.isRecorded = false;
      throw rateLimited(call, limited);
    },
    /** The same for an event of a stream, from a bucket of its own. Returns the refusal. */
    admitEvent({ caller }: RunningCall, address: () => string, parts: number, nowMs: number): LedgerError | null {
      const tokens = callsToRead(parts);
      if (caller === null || tokens === 0) return null;
      const limited = streamed.takeMore(bucketOf(caller, address), tokens, nowMs);
      return limited === null ? null : tooManyCalls(limited);
    },
    /** Charges what a read has cost beyond one call. The next calls are refused until the bucket is filled again. */
    charge({ caller, endpoint }: RunningCall, address: () => string, cost: WalkCost, nowMs: number): void {
      const tokens = callsOf(cost);
      if (caller === null || endpoint.isAppend || tokens === 0) return;
      calls.admitted.charge(bucketOf(caller, address), tokens, nowMs);
    },
  };
}

/** Identity headers alone prove nothing, so the key has the address: others cannot use up the entity's rate. */
function bucketOf(caller: Caller, address: () => string): string {
  return caller.apiKeyId ?? `${caller.actorId} ${addressKey(address())}`;
}

/**
 * The key that a long read counts for: the actor, whatever API key it uses; actor and address if only headers name the
 * actor; the address if there is no caller.
 */
export function walkerOf(caller: Caller | null, address: string): string {
  if (caller === null) return addressKey(address);
  return caller.apiKeyId === null ? `${caller.actorId} ${addressKey(address)}` : caller.actorId;
}

/** The calls that a read counts as, beyond the call itself. */
export function callsOf({ examined, chars, verified }: WalkCost): number {
  const { readEventsPerCall, readSignaturesPerCall, readCharsPerCall } = limits;
  return Math.floor(examined / readEventsPerCall + verified / readSignaturesPerCall + chars / readCharsPerCall);
}

/** A rate limit key for an address. An IPv6 caller usually has a whole /64, so a /64 counts as one address. */
export function addressKey(address: string): string {
  const plain = address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0');
  const groups = [...left, ...zeros, ...right].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}

/** The calls that a request counts as, beyond the call itself. */
function callsToRead(parts: number): number {
  return Math.floor(parts / limits.requestPartsPerCall);
}

function checkAnonymous(bytes: number, parts: number): void {
  const { anonymousRequestMaxBytes: limit_bytes, anonymousPartsMax: limit } = limits;
  if (bytes > limit_bytes) {
    const message = `A request without a credential may have ${limit_bytes} bytes.`;
    throw new LedgerError('payload_too_large', message, { limit_bytes });
  }
  if (parts <= limit) return;
  throw new LedgerError('payload_too_large', `A request without a credential may have ${limit} JSON values.`, {
    limit,
  });
}

function rateLimited(call: RunningCall, limited: RateLimited): LedgerError {
  call.headers.push(['ratelimit', limited.rateLimit], ['ratelimit-policy', limited.rateLimitPolicy]);
  return tooManyCalls(limited);
}

function tooManyCalls({ retryAfterS }: RateLimited): LedgerError {
  const message = `Too many calls: come again in ${retryAfterS} s.`;
  return new LedgerError('rate_limited', message, { retry_after_s: retryAfterS });
}
