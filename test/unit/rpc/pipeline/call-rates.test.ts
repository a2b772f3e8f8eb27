import { describe, expect, it } from 'vitest';
import type { IncomingCall } from '../../../../src/rpc/call/incoming-call.ts';
import type { RunningCall } from '../../../../src/rpc/call/running-call.ts';
import type { Endpoint } from '../../../../src/rpc/endpoints/endpoint.ts';
import { callsOf, createCallRates, walkerOf } from '../../../../src/rpc/pipeline/call-rates.ts';
import { PipelineCall, type PipelineCallParts } from '../../../../src/rpc/pipeline/pipeline-call.ts';
import type { Caller } from '../../../../src/service/calls/call.ts';

describe('calls beyond their rate', () => {
  const size = { perSecond: 1, burst: 2 };

  /** Makes calls of one key at the same moment. */
  function admitted(count: number, isAppend: boolean): string[] {
    const rates = createCallRates({ create: size, append: size, call: size });
    return Array.from({ length: count }, () => {
      const call = { caller: { apiKeyId: 'key' }, endpoint: { isAppend }, headers: [], isRecorded: true };
      try {
        rates.admit(call as unknown as RunningCall, 0);
        return 'in';
      } catch {
        return call.isRecorded ? 'recorded' : 'not recorded';
      }
    });
  }

  it.each([true, false])('are recorded up to the same rate (append: %s)', (isAppend) => {
    expect(admitted(6, isAppend)).toEqual(['in', 'in', 'recorded', 'recorded', 'not recorded', 'not recorded']);
  });
});

const sizes = {
  create: { perSecond: 1, burst: 10 },
  append: { perSecond: 1, burst: 10 },
  call: { perSecond: 1, burst: 10 },
};
const key = { apiKeyId: 'key', actorId: 'actor', mustSign: false };
const callOf = (
  caller: object | null,
  { isAppend = false, createsAnonymously = false, isCompressed = false, typeName = 'svc.v1.EntityService' } = {},
  address = '192.0.2.7',
) =>
  ({
    caller,
    address,
    endpoint: { isAppend, rule: { createsAnonymously }, method: { parent: { typeName } } },
    headers: [],
    isRecorded: true,
    isVerified: false,
    isCompressed,
    payer: null,
  }) as unknown as RunningCall;
const request = (values: number) => Buffer.from(`[${'0,'.repeat(values - 1)}0]`);

describe('the parts of a request', () => {
  const ratesOf = () => createCallRates(sizes);

  it('cost a call for each 50, before they are read', () => {
    const rates = ratesOf();
    const call = callOf(key);
    for (let at = 0; at < 20; at += 1) rates.admitRequest(call, request(49), 0);
    rates.admitRequest(call, request(1_000), 0);
    const waits = { code: 'rate_limited', details: { retry_after_s: 11 } };
    expect(() => rates.admitRequest(call, request(50), 0)).toThrow(expect.objectContaining(waits));
    expect(call.isRecorded).toBe(false);
    expect(() => rates.admitRequest(call, request(49), 0)).not.toThrow();
    expect(() => rates.admitRequest(call, request(50), 10_000)).not.toThrow();
  });

  it('of a creation without a credential cost its address', () => {
    const rates = ratesOf();
    rates.admitRequest(callOf(null, { createsAnonymously: true }), request(1_000), 0);
    expect(() => rates.admitRequest(callOf(null, { createsAnonymously: true }), request(50), 0)).toThrow(
      'Too many calls',
    );
    expect(() =>
      rates.admitRequest(callOf(null, { createsAnonymously: true }, '192.0.2.8'), request(50), 0),
    ).not.toThrow();
    expect(() => rates.admitRequest(callOf(null), request(50), 0)).not.toThrow();
  });

  it('without a credential may be those of the largest metadata, all numbers with fractions', () => {
    const metadata = `[${'1.5,'.repeat(4_095)}1.5]`;
    expect(metadata.length).toBeGreaterThan(16 * 1024);
    const body = Buffer.from(`{"metadata":${metadata}}`);
    expect(() => ratesOf().admitRequest(callOf(null, { createsAnonymously: true }), body, 0)).not.toThrow();
  });

  it('without a credential are 28,000 at most, in 64 KiB', () => {
    const limitOf = (bytes: Buffer) => () => ratesOf().admitRequest(callOf(null), bytes, 0);
    expect(limitOf(request(27_300))).not.toThrow();
    const message = expect.stringMatching(/28000 parts\.$/);
    expect(limitOf(request(28_001))).toThrow(expect.objectContaining({ message, details: { limit: 28_000 } }));
    expect(limitOf(Buffer.alloc(64 * 1024, ' '))).not.toThrow();
    expect(limitOf(Buffer.alloc(64 * 1024 + 1, ' '))).toThrow(
      expect.objectContaining({ code: 'payload_too_large', details: { limit_bytes: 65_536 } }),
    );
  });

  it('of an event of a stream cost the rate of appends, apart from small calls of the same key', () => {
    const rates = ratesOf();
    const call = callOf(key, { isAppend: true });
    expect(rates.admitEvent(call, 1_000, 0)).toBe(null);
    const waits = { error: { code: 'rate_limited', details: { retry_after_s: 2 } }, retryAfterMs: 1_500 };
    expect(rates.admitEvent(call, 0, 9_500)).toMatchObject(waits);
    expect(call.headers).toEqual([]);
    expect(() => rates.admit(call, 9_500)).not.toThrow();
    expect(() => rates.admitRequest(call, request(49), 9_500)).not.toThrow();
    expect(() => rates.admitRequest(call, request(50), 9_500)).toThrow('Too many calls');
    expect(rates.admitEvent(call, 50, 10_000)).toBe(null);
  });

  it('of requests and of streams with any key of an actor come from one bucket', () => {
    const rates = ratesOf();
    const other = callOf({ ...key, apiKeyId: 'other key' }, { isAppend: true });
    rates.admitRequest(callOf(key, { isAppend: true }), request(1_000), 0);
    expect(() => rates.admit(other, 0)).not.toThrow();
    expect(() => rates.admitRequest(other, request(50), 0)).toThrow('Too many calls');
    expect(rates.admitEvent(other, 50, 0)).toMatchObject({ error: { code: 'rate_limited' } });
    const another = callOf({ ...key, actorId: 'another actor', apiKeyId: 'another key' }, { isAppend: true });
    expect(() => rates.admitRequest(another, request(50), 0)).not.toThrow();
  });
});

it('an actor that owes calls sends small appends, but no compressed ones', () => {
  const rates = createCallRates(sizes);
  rates.admitRequest(callOf(key, { isAppend: true }), request(1_000), 0);
  const other = { ...key, apiKeyId: 'other key' };
  expect(() => rates.admit(callOf(other, { isAppend: true }), 0)).not.toThrow();
  const compressed = callOf(other, { isAppend: true, isCompressed: true });
  expect(() => rates.admit(compressed, 0)).toThrow('Too many calls');
  expect(() => rates.admit(compressed, 10_000)).not.toThrow();
});

describe('callers who are not known', () => {
  const codesOf = (count: number, act: () => void): string[] =>
    Array.from({ length: count }, () => {
      try {
        act();
        return 'in';
      } catch (error) {
        return (error as { code: string }).code;
      }
    });
  const spent = [...Array.from({ length: 100 }, () => 'in'), 'rate_limited'];

  it('pay from their address with calls that need no credential, and with credentials that are looked up', () => {
    for (const act of ['admit', 'admitUnknown'] as const) {
      const rates = createCallRates(sizes);
      expect(codesOf(101, () => rates[act](callOf(null), 0))).toEqual(spent);
      expect(codesOf(1, () => rates.admit(callOf(null, {}, '192.0.2.8'), 0))).toEqual(['in']);
      expect(codesOf(1, () => rates.admit(callOf(key), 0))).toEqual(['in']);
      expect(codesOf(2, () => rates[act](callOf(null), 100))).toEqual(['in', 'rate_limited']);
    }
  });

  it('get back what they paid for the look-up of a credential whose signature verifies', () => {
    const rates = createCallRates(sizes);
    const call = callOf({ actorId: 'entity', apiKeyId: null, mustSign: true }, { isAppend: true });
    rates.admitUnknown(call, 0);
    codesOf(99, () => rates.admitUnknown(callOf(null), 0));
    expect(codesOf(1, () => rates.admitUnknown(callOf(null), 0))).toEqual(['rate_limited']);
    rates.verified(call, 0);
    expect(codesOf(2, () => rates.admitUnknown(callOf(null), 0))).toEqual(['in', 'rate_limited']);
  });

  it('get back what they paid for the look-up of an API key that is valid', () => {
    const rates = createCallRates(sizes);
    const call = callOf(key);
    rates.admitUnknown(call, 0);
    codesOf(99, () => rates.admitUnknown(callOf(null), 0));
    rates.admit(call, 0);
    expect(codesOf(2, () => rates.admitUnknown(callOf(null), 0))).toEqual(['in', 'rate_limited']);
  });

  it('pay nothing for probes of health', () => {
    const rates = createCallRates(sizes);
    codesOf(101, () => rates.admit(callOf(null), 0));
    expect(codesOf(1, () => rates.admit(callOf(null, { typeName: 'svc.v1.HealthService' }), 0))).toEqual(['in']);
  });

  it('pay for what their reads examine', () => {
    const rates = createCallRates(sizes);
    rates.charge(callOf(null), { examined: 50_000, verified: 0, chars: 0 }, 0);
    expect(codesOf(1, () => rates.admit(callOf(null), 0))).toEqual(['rate_limited']);
  });

  it('pay for creations from another bucket', () => {
    const rates = createCallRates(sizes);
    codesOf(101, () => rates.admit(callOf(null), 0));
    expect(codesOf(11, () => rates.admit(callOf(null, { createsAnonymously: true }), 0)).at(-1)).toBe('rate_limited');
    expect(codesOf(1, () => rates.admit(callOf(null, { createsAnonymously: true }, '192.0.2.8'), 0))).toEqual(['in']);
  });
});

it('a refused event of a stream costs a call, and small events are refused once the actor owes calls', () => {
  const rates = createCallRates(sizes);
  const call = callOf(key, { isAppend: true });
  for (let at = 0; at < 10; at += 1) {
    expect(rates.admitEvent(call, 3, 0)).toBe(null);
    rates.chargeRefusedEvent(call, 0);
  }
  expect(rates.admitEvent(call, 3, 0)).toBe(null);
  rates.chargeRefusedEvent(call, 0);
  expect(rates.admitEvent(call, 3, 0)).toMatchObject({ error: { code: 'rate_limited' } });
  expect(rates.admitEvent(call, 3, 1_000)).toBe(null);
});

describe('callers whom headers alone name', () => {
  const named = (actorId: string, over: object = { isAppend: true }, address?: string) =>
    callOf({ actorId, apiKeyId: null, mustSign: true }, over, address);
  const codeOf = (act: () => void): string => {
    try {
      act();
      return 'in';
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  it('pay from their address, whichever entities they name', () => {
    const rates = createCallRates(sizes);
    const admit = (at: number) => codeOf(() => rates.admit(named(`entity ${at}`), 0));
    // An address has ten times the rate of one caller: many honest ones may share it.
    expect(Array.from({ length: 102 }, (_, at) => admit(at))).toEqual([
      ...Array.from({ length: 100 }, () => 'in'),
      'rate_limited',
      'rate_limited',
    ]);
    expect(codeOf(() => rates.admit(named('entity 0', undefined, '192.0.2.8'), 0))).toBe('in');
    expect(codeOf(() => rates.admit(callOf(key, { isAppend: true }), 0))).toBe('in');
  });

  it('pay for the parts of their requests from it too', () => {
    const rates = createCallRates(sizes);
    const parts = (id: string) => codeOf(() => rates.admitRequest(named(id), request(1_000), 0));
    const admitted = ['one', 'two', 'three', 'four', 'five', 'six', 'seven'].map(parts);
    expect(admitted).toEqual(['in', 'in', 'in', 'in', 'in', 'in', 'rate_limited']);
    expect(rates.admitEvent(named('eight'), 0, 0)).toMatchObject({ error: { code: 'rate_limited' } });
  });

  it('who are refused push out nobody’s bucket, however many entities they name', () => {
    const rates = createCallRates(sizes, 150);
    rates.admitRequest(callOf(key, { isAppend: true }), request(1_000), 0);
    const admit = (at: number) => {
      const call = named(`entity ${at}`);
      const codes = [codeOf(() => rates.admit(call, 0)), codeOf(() => rates.admitRequest(call, request(50), 0))];
      return rates.admitEvent(call, 0, 0) === null ? 'in' : codes.at(-1);
    };
    for (let at = 0; at < 60; at += 1) admit(at);
    for (let at = 60; at < 400; at += 1) expect(admit(at)).toBe('rate_limited');
    expect(codeOf(() => rates.admit(callOf(key, { isAppend: true }), 0))).toBe('rate_limited');
    expect(rates.admitEvent(callOf(key, { isAppend: true }), 0, 0)).toMatchObject({ retryAfterMs: 11_000 });
  });

  it('take half of the rate of their address at most with one request', () => {
    const rates = createCallRates(sizes);
    const call = named('one');
    rates.admitRequest(call, request(10_000), 0);
    const admit = (at: number) => codeOf(() => rates.admit(named(`entity ${at}`), 0));
    expect(Array.from({ length: 50 }, (_, at) => admit(at))).not.toContain('rate_limited');
    expect(admit(50)).toBe('rate_limited');
    // No more is given back than was taken.
    rates.verified(call, 0);
    expect(Array.from({ length: 50 }, (_, at) => admit(at))).not.toContain('rate_limited');
    expect(admit(50)).toBe('rate_limited');
  });

  it('get back what their address paid once a signature has verified, and then pay as their actor', () => {
    const rates = createCallRates(sizes);
    const call = named('one');
    rates.admit(call, 0);
    rates.admitRequest(call, request(1_000), 0);
    for (let at = 0; at < 79; at += 1) rates.admit(named(`another ${at}`), 0);
    expect(codeOf(() => rates.admit(named('two'), 0))).toBe('rate_limited');
    rates.verified(call, 0);
    for (let at = 0; at < 21; at += 1) rates.admit(named(`other ${at}`), 0);
    expect(codeOf(() => rates.admit(named('two'), 0))).toBe('rate_limited');
    expect(codeOf(() => rates.admitRequest(call, request(50), 0))).toBe('rate_limited');
    expect(rates.admitEvent(call, 50, 11_000)).toBe(null);
  });

  it('have the bounds of a request without a credential, but for an event, whose payload is signed', () => {
    const rates = createCallRates({ ...sizes, append: { perSecond: 0, burst: 0 } });
    const limitOf = (isAppend: boolean) => () => rates.admitRequest(named('one', { isAppend }), request(28_001), 0);
    expect(limitOf(false)).toThrow(expect.objectContaining({ code: 'payload_too_large', details: { limit: 28_000 } }));
    expect(limitOf(true)).not.toThrow();
  });
});

describe('reads', () => {
  const small = { examined: 499, verified: 0, chars: 100 };

  it('count as one more call for each 500 examined, 50 signatures verified and 1 MiB read', () => {
    expect(callsOf(small)).toBe(0);
    expect(callsOf({ examined: 10_000, verified: 0, chars: 64 * 1024 * 1024 })).toBe(20 + 64);
    expect(callsOf({ examined: 1_000, verified: 1_000, chars: 1024 * 1024 })).toBe(2 + 20 + 1);
  });

  it('are charged to their caller’s bucket, and small ones are not', () => {
    const size = { perSecond: 1, burst: 10 };
    const rates = createCallRates({ create: size, append: size, call: size });
    const call = callOf(key);
    for (let at = 0; at < 5; at++) {
      rates.admit(call, 0);
      rates.charge(call, small, 0);
    }
    rates.charge(call, { examined: 10_000, verified: 0, chars: 0 }, 0);
    const waits = { code: 'rate_limited', details: { retry_after_s: 16 } };
    expect(() => rates.admit(call, 0)).toThrow(expect.objectContaining(waits));
    // Another key of the actor waits too; its appends do not.
    const other = { ...key, apiKeyId: 'other key' };
    expect(() => rates.admit(callOf(other), 9_999)).toThrow('Too many calls');
    expect(() => rates.admit(callOf(other, { isAppend: true }), 9_999)).not.toThrow();
    expect(() => rates.admit(callOf(other), 10_000)).not.toThrow();
    expect(() => rates.admit(call, 16_000)).not.toThrow();
  });

  it('count for an actor with any of its keys, and for an address if the caller is not verified', () => {
    const byKey = { actorId: 'an actor', apiKeyId: 'a key' } as Caller;
    expect(walkerOf(callOf(byKey))).toBe('an actor');
    expect(walkerOf(callOf({ ...byKey, apiKeyId: null }))).toBe('an actor 192.0.2.7');
    expect(walkerOf(callOf(null))).toBe('192.0.2.7');
  });
});

it('the address of a call is that of its network', () => {
  const incoming = { address: () => '2001:db8:1:2::9', header: () => undefined } as unknown as IncomingCall;
  const random = (length: number) => Buffer.alloc(length);
  const parts = { random, now: () => 0, monotonicMs: () => 0 } as unknown as PipelineCallParts;
  const call = new PipelineCall(parts, {} as Endpoint, incoming, 0);
  expect(call.address).toBe('2001:db8:1:2::/64');
  expect(walkerOf(call)).toBe('2001:db8:1:2::/64');
});
