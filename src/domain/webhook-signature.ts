import { createHmac } from 'node:crypto';

/** What a subscription's secret begins with; base64 follows. */
export const WEBHOOK_SECRET_PREFIX = 'whsec_';
export const WEBHOOK_SECRET_BYTES = 32;

/** The secret of a subscription out of 32 random bytes (decisions.md, section 7). */
export function webhookSecret(random: Uint8Array): string {
  if (random.length !== WEBHOOK_SECRET_BYTES) throw new RangeError(`A secret takes ${WEBHOOK_SECRET_BYTES} bytes`);
  return `${WEBHOOK_SECRET_PREFIX}${Buffer.from(random).toString('base64')}`;
}

/** Value of `X-SVC-Signature` for a raw body: HMAC keyed with the secret's text as shown (spec, Webhook delivery 3). */
export function svcSignature(secret: string, body: Uint8Array): string {
  return `sha256=${createHmac('sha256', secret).update('svc-webhook-v1:').update(body).digest('hex')}`;
}

/**
 * Value of `webhook-signature` (Standard Webhooks 1.0): HMAC over `id.timestamp.body`, keyed with the bytes that the secret
 * encodes. `timestampS` is in seconds since 1970.
 */
export function standardSignature(secret: string, id: string, timestampS: number, body: Uint8Array): string {
  const key = Buffer.from(secret.slice(WEBHOOK_SECRET_PREFIX.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestampS}.`).update(body).digest('base64')}`;
}
