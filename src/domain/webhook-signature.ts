import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { decodeBase64 } from './base64.ts';

/** What a subscription's secret begins with; base64 follows. */
export const WEBHOOK_SECRET_PREFIX = 'whsec_';
export const WEBHOOK_SECRET_BYTES = 32;

/** The secret of a subscription out of 32 random bytes (decisions.md, section 7). */
export function webhookSecret(random: Uint8Array): string {
  if (random.length !== WEBHOOK_SECRET_BYTES) throw new RangeError(`A secret takes ${WEBHOOK_SECRET_BYTES} bytes`);
  return `${WEBHOOK_SECRET_PREFIX}${Buffer.from(random).toString('base64')}`;
}

/** Whether a text is the secret of a subscription: the prefix, and 32 bytes in base64 that re-encodes to itself. */
export function isWebhookSecret(text: string): boolean {
  const encoded = text.slice(WEBHOOK_SECRET_PREFIX.length);
  return text.startsWith(WEBHOOK_SECRET_PREFIX) && decodeBase64(encoded, WEBHOOK_SECRET_BYTES) !== null;
}

/** What a secret's two signatures are keyed with. Made once where many are signed: making them costs more than a signature. */
export interface WebhookKeys {
  /** Of `X-SVC-Signature`: the secret's text as shown. */
  readonly svc: KeyObject;
  /** Of `webhook-signature`: the bytes that the secret encodes. */
  readonly standard: KeyObject;
}

export function webhookKeys(secret: string): WebhookKeys {
  return {
    svc: createSecretKey(secret, 'utf8'),
    standard: createSecretKey(secret.slice(WEBHOOK_SECRET_PREFIX.length), 'base64'),
  };
}

/** Value of `X-SVC-Signature` for a raw body (spec, Webhook delivery 3). */
export function svcSignature({ svc }: WebhookKeys, body: Uint8Array): string {
  return `sha256=${createHmac('sha256', svc).update('svc-webhook-v1:').update(body).digest('hex')}`;
}

/** Value of `webhook-signature` (Standard Webhooks 1.0): HMAC over `id.timestamp.body`. `timestampS` is in seconds since 1970. */
export function standardSignature({ standard }: WebhookKeys, id: string, timestampS: number, body: Uint8Array): string {
  return `v1,${createHmac('sha256', standard).update(`${id}.${timestampS}.`).update(body).digest('base64')}`;
}
