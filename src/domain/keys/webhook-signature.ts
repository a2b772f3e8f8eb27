import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { decodeBase64 } from './base64.ts';

export const WEBHOOK_SECRET_PREFIX = 'whsec_';
export const WEBHOOK_SECRET_BYTES = 32;

/** RangeError for any length but 32 bytes. */
export function webhookSecret(random: Uint8Array): string {
  if (random.length !== WEBHOOK_SECRET_BYTES) throw new RangeError(`A secret takes ${WEBHOOK_SECRET_BYTES} bytes`);
  return `${WEBHOOK_SECRET_PREFIX}${Buffer.from(random).toString('base64')}`;
}

/** The prefix, and 32 bytes in base64 that encode to the same text again. */
export function isWebhookSecret(text: string): boolean {
  const encoded = text.slice(WEBHOOK_SECRET_PREFIX.length);
  return text.startsWith(WEBHOOK_SECRET_PREFIX) && decodeBase64(encoded, WEBHOOK_SECRET_BYTES) !== null;
}

/** HMAC keys of a secret's two signatures. Making them costs more than a signature. */
export interface WebhookKeys {
  /** For `X-SVC-Signature`: the text of the secret as it was shown. */
  readonly svc: KeyObject;
  /** For `webhook-signature`: the bytes that the secret encodes. */
  readonly standard: KeyObject;
}

export function webhookKeys(secret: string): WebhookKeys {
  return {
    svc: createSecretKey(secret, 'utf8'),
    standard: createSecretKey(secret.slice(WEBHOOK_SECRET_PREFIX.length), 'base64'),
  };
}

/** `X-SVC-Signature`: HMAC over `svc-webhook-v1:` and the raw body. */
export function svcSignature({ svc }: WebhookKeys, body: Uint8Array): string {
  return `sha256=${createHmac('sha256', svc).update('svc-webhook-v1:').update(body).digest('hex')}`;
}

/** `webhook-signature` (Standard Webhooks 1.0): HMAC over `id.timestamp.body`, seconds since 1970. */
export function standardSignature({ standard }: WebhookKeys, id: string, timestampS: number, body: Uint8Array): string {
  return `v1,${createHmac('sha256', standard).update(`${id}.${timestampS}.`).update(body).digest('base64')}`;
}
