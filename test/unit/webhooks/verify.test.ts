import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { verifyWebhook } from '../../../src/client/webhook.ts';
import {
  standardSignature,
  svcSignature,
  webhookKeys,
  webhookSecret,
} from '../../../src/domain/keys/webhook-signature.ts';

const secret = webhookSecret(Buffer.alloc(32, 7));
const nowMs = Date.parse('2026-11-21T02:06:39.500Z');
const now = () => nowMs;
const timestampS = Math.floor(nowMs / 1_000);
const id = '01a1fdf3-0f6a-7216-a587-bf138f3791a3';

const body = (eventId = id) =>
  `{"api_version":"2026-04-14","event":{"id":"${eventId}","ledger_id":null,"event_type":"PING","payload":{"a":1.10},` +
  '"actor_id":null,"created_at":"2026-11-21T02:06:39.123Z","seq":null,"master_id":null,"hash":null},' +
  '"created_at":"2026-11-21T02:06:39.123Z"}';

/** The headers as a service would send them, made here without the service's code. */
function headersOf(raw: string, from: { secret?: string; timestampS?: number; id?: string } = {}) {
  const { secret: used = secret, timestampS: time = timestampS, id: named = id } = from;
  const key = Buffer.from(used.slice(6), 'base64');
  return {
    'x-svc-signature': `sha256=${createHmac('sha256', used).update(`svc-webhook-v1:${raw}`).digest('hex')}`,
    'webhook-id': named,
    'webhook-timestamp': String(time),
    'webhook-signature': `v1,${createHmac('sha256', key).update(`${named}.${time}.${raw}`).digest('base64')}`,
  };
}

const refusal = (headers: Record<string, string | string[] | undefined>, raw: string | Uint8Array = body()): string => {
  try {
    verifyWebhook(secret, headers, raw, { now });
    return 'taken';
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe('signatures', () => {
  test('the vector of Standard Webhooks', () => {
    // https://github.com/standard-webhooks/standard-webhooks, libraries: the same values in every language.
    const known = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const raw = Buffer.from('{"test": 2432232314}');
    expect(standardSignature(webhookKeys(known), 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, raw)).toBe(
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    );
  });

  test('the service’s signatures match a second implementation', () => {
    const headers = headersOf(body());
    expect(svcSignature(webhookKeys(secret), Buffer.from(body()))).toBe(headers['x-svc-signature']);
    expect(standardSignature(webhookKeys(secret), id, timestampS, Buffer.from(body()))).toBe(
      headers['webhook-signature'],
    );
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  });
});

describe('verifyWebhook', () => {
  test('returns the delivered event', () => {
    const delivery = verifyWebhook(secret, headersOf(body()), Buffer.from(body()), { now });
    expect(delivery).toEqual({
      apiVersion: '2026-04-14',
      createdAt: '2026-11-21T02:06:39.123Z',
      event: {
        id,
        ledgerId: null,
        eventType: 'PING',
        payload: { a: 1.1 },
        actorId: null,
        createdAt: '2026-11-21T02:06:39.123Z',
        seq: null,
        masterId: null,
        hash: null,
      },
    });
  });

  test('accepts headers of fetch and of Node, with names in any case', () => {
    const headers = headersOf(body());
    expect(verifyWebhook(secret, new Headers(headers), body(), { now }).event.id).toBe(id);
    const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
    expect(refusal(upper)).toBe('taken');
  });

  test('accepts one of several signatures', () => {
    const headers = headersOf(body());
    expect(refusal({ ...headers, 'webhook-signature': `v1,AAAA ${headers['webhook-signature']} v1a,BBBB` })).toBe(
      'taken',
    );
  });

  test('refuses every single changed byte of the body', () => {
    const raw = Buffer.from(body());
    for (let at = 0; at < raw.length; at++) {
      const changed = Buffer.from(raw);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(refusal(headersOf(body()), changed)).toBe('invalid_signature');
    }
  });

  test('refuses another secret, a missing or doubled header, and one signature without the other', () => {
    expect(refusal(headersOf(body(), { secret: webhookSecret(Buffer.alloc(32, 8)) }))).toBe('invalid_signature');
    for (const name of Object.keys(headersOf(body()))) {
      const headers: Record<string, string> = headersOf(body());
      expect(refusal({ ...headers, [name]: undefined })).toBe('invalid_signature');
      expect(refusal({ ...headers, [name]: '' })).toBe('invalid_signature');
      expect(refusal({ ...headers, [name]: [headers[name] ?? '', headers[name] ?? ''] })).toBe('invalid_signature');
    }
    const other = headersOf(body(), { secret: webhookSecret(Buffer.alloc(32, 8)) });
    expect(refusal({ ...headersOf(body()), 'webhook-signature': other['webhook-signature'] })).toBe(
      'invalid_signature',
    );
    expect(refusal({ ...headersOf(body()), 'x-svc-signature': other['x-svc-signature'] })).toBe('invalid_signature');
  });

  test('accepts only a secret of 32 bytes in base64: any signature would match an empty key', () => {
    const wrong = [
      '',
      'secret',
      'whsec_',
      'whsec_A',
      'whsec_=',
      'whsec_AAAA',
      secret.slice(6),
      `${secret}\n`,
      `${secret}AAAA`,
    ];
    const short = webhookSecret(Buffer.alloc(32, 7)).replace(/.{4}=$/, '=');
    const loose = [
      secret.slice(0, -1),
      `${secret.slice(0, -2)}d=`,
      webhookSecret(Buffer.alloc(32, 0xff)).replaceAll('/', '_'),
    ];
    for (const given of [...wrong, short, ...loose])
      expect(() => verifyWebhook(given, headersOf(body(), { secret: given }), body(), { now }), given).toThrow(
        TypeError,
      );
  });

  test('refuses a delivery older than five minutes, or from the future', () => {
    for (const [offS, expected] of [
      [299, 'taken'],
      [-299, 'taken'],
      [302, 'invalid_signature'],
      [-302, 'invalid_signature'],
    ] as const)
      expect(refusal(headersOf(body(), { timestampS: timestampS - offS }))).toBe(expected);
    const stale = { ...headersOf(body(), { timestampS: timestampS - 3_600 }), 'webhook-timestamp': String(timestampS) };
    expect(refusal(stale)).toBe('invalid_signature');
    for (const time of ['NaN', '1e9', ' 5', '-1', '99999999999999'])
      expect(refusal({ ...headersOf(body()), 'webhook-timestamp': time })).toBe('invalid_signature');
  });

  test('refuses a signed id that is not the id of the event', () => {
    const other = '01a1fdf3-0f6a-7216-a587-bf138f3791a4';
    expect(refusal(headersOf(body(), { id: other }))).toBe('invalid_signature');
    expect(refusal(headersOf(body(other)), body(other))).toBe('invalid_signature');
  });

  test('refuses a signed body that is not a delivery', () => {
    for (const raw of ['', 'null', '[]', '{}', '{"event":{}}', 'no JSON'])
      expect(refusal(headersOf(raw), raw)).toBe('invalid_answer');
  });
});
