import { LedgerError } from '../../domain/errors.ts';
import { partsIn } from '../../domain/json/json-parts.ts';
import { HealthService } from '../../gen/svc/v1/health_pb.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Caller, EventBeyondRate } from '../../service/calls/call.ts';
import type { WalkCost } from '../../service/walking/walk.ts';
import type { Payer, RunningCall } from '../call/running-call.ts';
import { type BucketSize, type RateLimited, RateLimiter } from './rate-limit.ts';

export interface CallRateSizes {
  readonly create: BucketSize;
  readonly append: BucketSize;
  readonly call: BucketSize;
}

/** The rate limits: anonymous creations, other calls without a known caller, appends, and all other calls. */
export type CallRates = ReturnType<typeof createCallRates>;

/** `callersMax`: callers whose rate is remembered. */
export function createCallRates(sizes: CallRateSizes, callersMax: number = limits.rateLimitKeysMax) {
  const creates = new RateLimiter('create', sizes.create, callersMax);
  const unknown = new RateLimiter('call', ofAddress(sizes.call), callersMax);
  const appends = new CallerRate('append', sizes.append, callersMax);
  const calls = new CallerRate('call', sizes.call, callersMax);
  const rateOf = (call: RunningCall): CallerRate => (call.endpoint.isAppend ? appends : calls);
  /** null for probes of the service's health. */
  const rateWithoutCaller = ({ endpoint }: RunningCall): RateLimiter | null => {
    if (endpoint.rule.createsAnonymously) return creates;
    return endpoint.method.parent.typeName === HealthService.typeName ? null : unknown;
  };
  const giveBackUnknown = (call: RunningCall, nowMs: number): void => {
    if (call.paidAsUnknown) unknown.charge(call.address, -1, nowMs);
    call.paidAsUnknown = false;
  };
  return {
    /**
     * Takes one call from the rate of the address, whose other callers are not known either. Throws `rate_limited` and
     * sets the headers that say when to retry.
     */
    admitUnknown(call: RunningCall, nowMs: number): void {
      const limited = unknown.take(call.address, nowMs);
      if (limited !== null) throw rateLimited(call, limited);
      call.paidAsUnknown = true;
    },
    /**
     * Takes one call from the caller's buckets. If one is empty, throws `rate_limited` and sets the headers that say
     * when to retry. Refused calls go into the caller's access history at no more than the rate for calls, so that a
     * flood of them cannot fill the store.
     */
    admit(call: RunningCall, nowMs: number): void {
      const { caller } = call;
      let limited: RateLimited | null = null;
      if (caller !== null) {
        // Who has the API key is known. Headers alone prove nothing yet.
        if (caller.apiKeyId !== null) giveBackUnknown(call, nowMs);
        const rate = rateOf(call);
        const payer = payerOf(caller, call);
        limited = rate.takeCall(payer, call, nowMs);
        if (limited !== null) call.isRecorded = rate.isRecorded(payer, nowMs);
      } else {
        limited = rateWithoutCaller(call)?.take(call.address, nowMs) ?? null;
      }
      if (limited !== null) throw rateLimited(call, limited);
    },
    /**
     * Takes from the caller's buckets what it costs to read its request beyond one call, before it is read. Throws
     * `rate_limited` if one owes calls already, and `payload_too_large` for too much of a caller that is not verified.
     * A call that is refused here is not recorded: what it names would have to be read.
     */
    admitRequest(call: RunningCall, request: Uint8Array, nowMs: number): void {
      const { caller, endpoint } = call;
      // The largest payload has to be read to verify its signature.
      const isBounded = caller === null || (caller.mustSign && !endpoint.isAppend);
      if (isBounded && request.length > limits.anonymousRequestMaxBytes) throw tooManyBytes();
      const parts = partsIn(request);
      if (isBounded && parts > limits.anonymousPartsMax) throw tooManyParts();
      const tokens = callsToRead(parts);
      if (tokens === 0) return;
      const limited =
        caller === null
          ? (rateWithoutCaller(call)?.takeMore(call.address, tokens, nowMs) ?? null)
          : rateOf(call).takeCosts(payerOf(caller, call), tokens, nowMs);
      if (limited === null) return;
      call.isRecorded = false;
      throw rateLimited(call, limited);
    },
    /**
     * The same for an event of a stream, whose costs take nothing from the calls of the same key. Returns the refusal.
     */
    admitEvent(call: RunningCall, parts: number, nowMs: number): EventBeyondRate | null {
      if (call.caller === null) return null;
      const tokens = callsToRead(parts);
      const limited = appends.takeEventCosts(payerOf(call.caller, call), tokens, nowMs);
      return limited === null ? null : { error: tooManyCalls(limited), retryAfterMs: limited.retryAfterMs };
    },
    /** An event of a stream that was refused for good counts as a call. */
    chargeRefusedEvent(call: RunningCall, nowMs: number): void {
      if (call.caller !== null) appends.chargeEvent(payerOf(call.caller, call), 1, nowMs);
    },
    /** Charges what a read has cost beyond one call. The next calls are refused until the bucket is filled again. */
    charge(call: RunningCall, cost: WalkCost, nowMs: number): void {
      const { caller, endpoint } = call;
      const tokens = callsOf(cost);
      if (endpoint.isAppend || tokens === 0) return;
      if (caller === null) unknown.charge(call.address, tokens, nowMs);
      else calls.charge(payerOf(caller, call), tokens, nowMs);
    },
    /** The caller's signature was verified: its address gets back what the call took from it, and pays no more. */
    verified(call: RunningCall, nowMs: number): void {
      if (call.payer !== null) rateOf(call).verified(call.payer, nowMs);
      giveBackUnknown(call, nowMs);
    },
  };
}

function payerOf(caller: Caller, call: RunningCall): Payer {
  call.payer ??= newPayer(caller, call);
  return call.payer;
}

function newPayer({ apiKeyId }: Caller, call: RunningCall): Payer {
  const actor = walkerOf(call);
  const unverifiedAddress = apiKeyId !== null || call.isVerified ? null : call.address;
  return { key: apiKeyId ?? actor, actor, unverifiedAddress, addressTokens: 0 };
}

/** Honest entities behind one gateway share its address, and all are unverified until their requests were read. */
const callersPerAddress = 10;

function ofAddress({ perSecond, burst }: BucketSize): BucketSize {
  return { perSecond: callersPerAddress * perSecond, burst: callersPerAddress * burst };
}

/**
 * The rate of one kind of call. Each bucket has the same size, but that of an address is larger. A call counts for its
 * API key. What it costs beyond that counts for the actor too, so that many keys of one actor take no more of the main
 * thread than one. All that an unverified caller costs counts for its address too, whichever entities it names.
 */
class CallerRate {
  readonly #keys: RateLimiter;
  readonly #actors: RateLimiter;
  readonly #addresses: RateLimiter;
  readonly #recorded: RateLimiter;
  /** The most that one request or event takes from its address's bucket, so that others there are not refused. */
  readonly #addressTokensMax: number;

  constructor(name: 'append' | 'call', size: BucketSize, callersMax: number) {
    const limiter = (of: BucketSize) => new RateLimiter(name, of, callersMax);
    [this.#keys, this.#actors, this.#recorded] = [limiter(size), limiter(size), limiter(size)];
    this.#addresses = limiter(ofAddress(size));
    this.#addressTokensMax = ofAddress(size).burst / 2;
  }

  takeCall(payer: Payer, call: RunningCall, nowMs: number): RateLimited | null {
    const limited =
      this.#checkAddress(payer, 1, nowMs) ??
      this.#keys.check(payer.key, 1, nowMs) ??
      this.#checkOwed(payer, call, nowMs);
    if (limited !== null) return limited;
    this.#keys.charge(payer.key, 1, nowMs);
    this.#chargeAddress(payer, 1, nowMs);
    return null;
  }

  /**
   * Small appends go on while the actor owes costs, which may be those of its streams. The size of a compressed one is
   * known only once it is unpacked, which costs as much as a large one.
   */
  #checkOwed(payer: Payer, call: RunningCall, nowMs: number): RateLimited | null {
    const limited = this.#actors.check(payer.actor, 0, nowMs);
    return limited !== null && call.endpoint.isAppend && !call.isCompressed ? null : limited;
  }

  takeCosts(payer: Payer, tokens: number, nowMs: number): RateLimited | null {
    const limited =
      this.#checkAddress(payer, 0, nowMs) ??
      this.#keys.check(payer.key, 0, nowMs) ??
      this.takeEventCosts(payer, tokens, nowMs);
    if (limited === null) this.#keys.charge(payer.key, tokens, nowMs);
    return limited;
  }

  takeEventCosts(payer: Payer, tokens: number, nowMs: number): RateLimited | null {
    const limited = this.#checkAddress(payer, 0, nowMs) ?? this.#actors.check(payer.actor, 0, nowMs);
    if (limited === null) this.chargeEvent(payer, tokens, nowMs);
    return limited;
  }

  chargeEvent(payer: Payer, tokens: number, nowMs: number): void {
    this.#actors.charge(payer.actor, tokens, nowMs);
    this.#chargeAddress(payer, tokens, nowMs);
  }

  charge(payer: Payer, tokens: number, nowMs: number): void {
    this.#keys.charge(payer.key, tokens, nowMs);
    this.chargeEvent(payer, tokens, nowMs);
  }

  verified(payer: Payer, nowMs: number): void {
    if (payer.unverifiedAddress === null) return;
    this.#addresses.charge(payer.unverifiedAddress, -payer.addressTokens, nowMs);
    payer.unverifiedAddress = null;
  }

  /** Whether one more refused call may be recorded. */
  isRecorded({ actor }: Payer, nowMs: number): boolean {
    return this.#recorded.take(actor, nowMs) === null;
  }

  /** Checked first: the other checks create buckets, and a flood of names would evict those of other callers. */
  #checkAddress({ unverifiedAddress }: Payer, tokens: number, nowMs: number): RateLimited | null {
    return unverifiedAddress === null ? null : this.#addresses.check(unverifiedAddress, tokens, nowMs);
  }

  #chargeAddress(payer: Payer, tokens: number, nowMs: number): void {
    if (payer.unverifiedAddress === null) return;
    const taken = Math.min(tokens, this.#addressTokensMax);
    this.#addresses.charge(payer.unverifiedAddress, taken, nowMs);
    payer.addressTokens += taken;
  }
}

/**
 * The key that a long read counts for: the actor, whatever API key it uses; actor and address if only headers name the
 * actor; the address if there is no caller.
 */
export function walkerOf(call: Pick<RunningCall, 'caller' | 'address'>): string {
  const { caller } = call;
  if (caller === null) return call.address;
  return caller.apiKeyId === null ? `${caller.actorId} ${call.address}` : caller.actorId;
}

/** The calls that a read counts as, beyond the call itself. */
export function callsOf({ examined, chars, verified }: WalkCost): number {
  const { readEventsPerCall, readSignaturesPerCall, readCharsPerCall } = limits;
  return Math.floor(examined / readEventsPerCall + verified / readSignaturesPerCall + chars / readCharsPerCall);
}

/** The calls that a request counts as, beyond the call itself. */
function callsToRead(parts: number): number {
  return Math.floor(parts / limits.requestPartsPerCall);
}

const unverified = 'A request without a credential, or whose signature is yet to be verified, may have';

function tooManyBytes(): LedgerError {
  const limit_bytes = limits.anonymousRequestMaxBytes;
  return new LedgerError('payload_too_large', `${unverified} ${limit_bytes} bytes.`, { limit_bytes });
}

function tooManyParts(): LedgerError {
  const limit = limits.anonymousPartsMax;
  return new LedgerError('payload_too_large', `${unverified} ${limit} parts.`, { limit });
}

function rateLimited(call: RunningCall, limited: RateLimited): LedgerError {
  call.headers.push(['ratelimit', limited.rateLimit], ['ratelimit-policy', limited.rateLimitPolicy]);
  return tooManyCalls(limited);
}

function tooManyCalls({ retryAfterS }: RateLimited): LedgerError {
  const message = `Too many calls: come again in ${retryAfterS} s.`;
  return new LedgerError('rate_limited', message, { retry_after_s: retryAfterS });
}
