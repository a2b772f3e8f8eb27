import { decodeBase64 } from './base64.ts';
import { platformCrypto } from './crypto.ts';
import type { Hmac } from './crypto-port.ts';
import { toHex } from './hex.ts';

export const WEBHOOK_SECRET_PREFIX = 'whsec_';
export const WEBHOOK_SECRET_BYTES = 32;

/** RangeError for any length but 32 bytes. */
export function webhookSecret(random: Uint8Array): string {
  if (random.length !== WEBHOOK_SECRET_BYTES) throw new RangeError(`A secret takes ${WEBHOOK_SECRET_BYTES} bytes`);
  return `${WEBHOOK_SECRET_PREFIX}${platformCrypto.toBase64(random)}`;
}

/** The prefix, and 32 bytes in base64 that encode to the same text again. */
export function isWebhookSecret(text: string): boolean {
  const encoded = text.slice(WEBHOOK_SECRET_PREFIX.length);
  return text.startsWith(WEBHOOK_SECRET_PREFIX) && decodeBase64(encoded, WEBHOOK_SECRET_BYTES) !== null;
}

/** HMAC keys of a secret's two signatures. Making them costs more than a signature. */
export interface WebhookKeys {
  /** For `X-SVC-Signature`: the text of the secret as it was shown. */
  readonly svc: Hmac;
  /** For `webhook-signature`: the bytes that the secret encodes. */
  readonly standard: Hmac;
}

export function webhookKeys(secret: string): WebhookKeys {
  const { fromBase64, hmacSha256 } = platformCrypto;
  return {
    svc: hmacSha256(new TextEncoder().encode(secret)),
    standard: hmacSha256(fromBase64(secret.slice(WEBHOOK_SECRET_PREFIX.length))),
  };
}

/** `X-SVC-Signature`: HMAC over `svc-webhook-v1:` and the raw body. */
export function svcSignature({ svc }: WebhookKeys, body: Uint8Array): string {
  return `sha256=${toHex(svc('svc-webhook-v1:', body))}`;
}

/** `webhook-signature` (Standard Webhooks 1.0): HMAC over `id.timestamp.body`, seconds since 1970. */
export function standardSignature({ standard }: WebhookKeys, id: string, timestampS: number, body: Uint8Array): string {
  return `v1,${platformCrypto.toBase64(standard(`${id}.${timestampS}.`, body))}`;
}
