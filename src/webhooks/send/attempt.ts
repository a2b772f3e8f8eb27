import { standardSignature, svcSignature, type WebhookKeys, webhookKeys } from '../../domain/keys/webhook-signature.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import type { SecretBox } from '../../service/records/secret-box.ts';
import type { DeliveryRecord } from '../../service/webhooks/delivery-record.ts';
import { type SubscriptionRecord, secretContext } from '../../service/webhooks/subscription-record.ts';
import { attemptTimeoutMs, type Poster, type PostResult } from '../post/http-post.ts';
import { pingBody } from './delivery-body.ts';
import type { EventBodies } from './event-bodies.ts';

/** Of what a receiver or a name server has sent, only the status is kept. */
export interface AttemptOutcome {
  readonly kind: 'delivered' | 'failed' | 'gone' | 'dropped';
  readonly status: number | null;
  /** A sentence for the subscription's owner. */
  readonly error: string | null;
  /** ms from sending until the answer. null if there was none. */
  readonly tookMs: number | null;
}

interface AttemptParts {
  readonly bodies: EventBodies;
  readonly secrets: SecretBox;
  readonly poster: Pick<Poster, 'post'>;
  readonly clock: Clock;
  mayStillSend(subscriptionId: string): boolean;
  /** `masterId` null: an event of the ledger itself. */
  mayRead(actorId: string, ledgerId: string, masterId: string | null): Promise<boolean>;
}

/**
 * Makes one attempt at a delivery: checks that the owner may still read the event, then sends a signed POST. Returns
 * null if the subscription has ended, or another node sends for it. Throws if the service itself fails. Neither counts
 * as an attempt.
 */
export async function attempt(
  parts: AttemptParts,
  subscription: SubscriptionRecord,
  delivery: DeliveryRecord,
): Promise<AttemptOutcome | null> {
  const { place } = delivery;
  let body: Buffer;
  if (place === null) {
    body = pingBody(delivery);
  } else {
    const ready = await parts.bodies.of(delivery, place);
    if (ready === null) return dropped('The stored event is damaged, so it is not sent.');
    if (!(await parts.mayRead(subscription.actorId, place.ledgerId, ready.masterId)))
      return dropped('The owner of the subscription may not read this event any more.');
    body = ready.bytes;
  }
  // Checked last: the subscription may have ended, or another node may send for it, since the event was read.
  if (!parts.mayStillSend(subscription.id)) return null;
  const startedMs = parts.clock.now();
  const late = new AbortController();
  const cancel = parts.clock.after(attemptTimeoutMs, () => late.abort());
  try {
    const headers = headersOf(parts.secrets, subscription, delivery, body, startedMs);
    const result = await parts.poster.post({ url: subscription.url, headers, body, signal: late.signal });
    return outcomeOf(result, parts.clock.now() - startedMs);
  } finally {
    cancel();
  }
}

function headersOf(
  secrets: SecretBox,
  subscription: SubscriptionRecord,
  delivery: DeliveryRecord,
  body: Buffer,
  nowMs: number,
): Record<string, string> {
  const keys = keysOf(secrets, subscription);
  const timestampS = Math.floor(nowMs / 1_000);
  return {
    'content-type': 'application/json; charset=utf-8',
    'user-agent': 'ledger-trust-webhooks/1',
    'x-svc-signature': svcSignature(keys, body),
    'webhook-id': delivery.eventId,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': standardSignature(keys, delivery.eventId, timestampS, body),
  };
}

/** Decrypting a secret costs as much as several signatures. */
const openedKeys = new WeakMap<SubscriptionRecord, WebhookKeys>();

function keysOf(secrets: SecretBox, subscription: SubscriptionRecord): WebhookKeys {
  const opened = openedKeys.get(subscription);
  if (opened !== undefined) return opened;
  const keys = webhookKeys(secrets.open(subscription.sealedSecret, secretContext(subscription.id)).toString());
  openedKeys.set(subscription, keys);
  return keys;
}

function outcomeOf(result: PostResult, tookMs: number): AttemptOutcome {
  if (result.kind === 'failed') return { kind: 'failed', status: null, error: faultTexts[result.fault], tookMs: null };
  const { status } = result;
  if (status >= 200 && status < 300) return { kind: 'delivered', status, error: null, tookMs };
  if (status === 410) {
    return { kind: 'gone', status, error: 'The receiver answered 410 Gone: the subscription has ended.', tookMs };
  }
  const error =
    status >= 300 && status < 400
      ? `The receiver answered ${status}; redirects are not followed.`
      : `The receiver answered ${status}.`;
  return { kind: 'failed', status, error, tookMs };
}

const faultTexts: Readonly<Record<Extract<PostResult, { kind: 'failed' }>['fault'], string>> = {
  unknown_name: 'The host name of the receiver has no address.',
  forbidden_address: 'The receiver stands at an address that webhooks may not go to.',
  not_reached: 'The receiver could not be connected to.',
  tls_failed: 'No TLS connection could be made: check the certificate of the receiver.',
  timeout: `The receiver did not answer within ${attemptTimeoutMs / 1_000} seconds.`,
  broken_off: 'The connection broke off before the receiver had answered.',
};

function dropped(error: string): AttemptOutcome {
  return { kind: 'dropped', status: null, error, tookMs: null };
}

/** The delivery's record after an attempt that ended at `nowMs`. `next`: when to retry if it failed (null: never). */
export function afterAttempt(
  delivery: DeliveryRecord,
  outcome: AttemptOutcome,
  nowMs: number,
  next: number | null,
): DeliveryRecord {
  const attempts = delivery.attempts + (outcome.kind === 'dropped' ? 0 : 1);
  const seen = { attempts, lastError: outcome.error, lastResponseStatus: outcome.status };
  if (outcome.kind === 'delivered') {
    return { ...delivery, ...seen, status: 'DELIVERED', nextAttemptAt: null, deliveredAt: isoTime(nowMs) };
  }
  if (outcome.kind === 'failed' && next !== null) return { ...delivery, ...seen, nextAttemptAt: isoTime(next) };
  return { ...delivery, ...seen, status: 'FAILED', nextAttemptAt: null };
}
