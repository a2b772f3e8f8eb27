import type { MessageShape } from '@bufbuild/protobuf';
import {
  isWebhookSecret,
  standardSignature,
  svcSignature,
  WEBHOOK_SECRET_BYTES,
  WEBHOOK_SECRET_PREFIX,
  webhookKeys,
} from '../domain/keys/webhook-signature.ts';
import { WebhookBodySchema } from '../gen/svc/v1/webhooks_pb.ts';
import { answerFromJson } from './call/answer-decoding.ts';
import { invalidAnswer, LedgerTrustError } from './error.ts';
import type { Answer } from './shapes.ts';

/** A delivery whose signatures were checked. Delivery is at least once: recognise a repeated delivery by `event.id`. */
export type WebhookDelivery = Answer<MessageShape<typeof WebhookBodySchema>>;

/** Headers, as Node's `request.headers` or fetch's `Headers` hold them. */
export type WebhookHeaders = Headers | { readonly [name: string]: string | readonly string[] | undefined };

export interface VerifyWebhookOptions {
  /** Milliseconds that an attempt may be old, or ahead of this clock; 5 minutes if left out. Limits replays. */
  readonly toleranceMs?: number;
  /** Milliseconds since 1970. `Date.now` if left out. */
  readonly now?: () => number;
}

const toleranceDefaultMs = 5 * 60_000;

/**
 * Verifies a received webhook (Standard Webhooks, and X-SVC-Signature) and returns its content. `secret` is the secret
 * of the subscription. `body` is the raw body, byte for byte as received: parsed and written again it has another
 * signature. Both signatures must be good, and the attempt recent.
 *
 * Throws LedgerTrustError `invalid_signature`, or `invalid_answer` if the signed body is no delivery. Throws TypeError
 * if `secret` is not the secret of a subscription: with a shorter key, or an empty one, anybody could sign.
 */
export function verifyWebhook(
  secret: string,
  headers: WebhookHeaders,
  body: Uint8Array | string,
  options: VerifyWebhookOptions = {},
): WebhookDelivery {
  if (!isWebhookSecret(secret)) {
    throw new TypeError(
      `The secret of a subscription is ${WEBHOOK_SECRET_PREFIX} and ${WEBHOOK_SECRET_BYTES} bytes in base64`,
    );
  }
  const keys = webhookKeys(secret);
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signature = header(headers, 'x-svc-signature');
  if (!isSame(signature, svcSignature(keys, bytes))) throw refused('X-SVC-Signature is not that of this body.');
  const id = header(headers, 'webhook-id');
  const timestamp = header(headers, 'webhook-timestamp');
  if (!/^\d{1,12}$/.test(timestamp)) throw refused('webhook-timestamp is no time.');
  const timestampS = Number(timestamp);
  const expected = standardSignature(keys, id, timestampS, bytes);
  // Standard Webhooks allows several signatures, separated by spaces. One of them must be of this secret, as
  // X-SVC-Signature must.
  const given = header(headers, 'webhook-signature').split(' ');
  if (!given.some((one) => isSame(one, expected)))
    throw refused('webhook-signature is not that of this body, id and time.');
  const ageMs = Math.abs((options.now ?? Date.now)() - timestampS * 1_000);
  if (ageMs > (options.toleranceMs ?? toleranceDefaultMs))
    throw refused('The delivery is too old, or a clock is wrong.');
  const delivery = answerFromJson(WebhookBodySchema, parsed(bytes)) as WebhookDelivery;
  if (delivery.event.id !== id) throw refused('webhook-id is not the id of the event.');
  return delivery;
}

function header(headers: WebhookHeaders, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : (headers[name] ?? Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]);
  if (typeof value !== 'string' || value === '')
    throw refused(`Header ${name} is missing, or was sent more than once.`);
  return value;
}

/** Takes as long for a wrong text as for the right one of the same length. */
function isSame(given: string, expected: string): boolean {
  if (given.length !== expected.length) return false;
  let difference = 0;
  for (let at = 0; at < expected.length; at += 1) difference |= given.charCodeAt(at) ^ expected.charCodeAt(at);
  return difference === 0;
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw invalidAnswer('WebhookBody', 'JSON', cause);
  }
}

function refused(message: string): LedgerTrustError {
  return new LedgerTrustError('invalid_signature', message);
}
