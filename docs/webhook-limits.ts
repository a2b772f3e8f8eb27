import { deliveryWaitsMs } from '../src/domain/values/delivery-schedule.ts';
import { queueBounds } from '../src/runtime/limits/queue-bounds.ts';
import { finishedKeptMs } from '../src/service/webhooks/delivery-record.ts';
import { eventTypesMax, partOfFree, subscriptionsPerActorMax } from '../src/service/webhooks/webhooks.ts';
import { answerHeadersMaxBytes, attemptTimeoutMs } from '../src/webhooks/post/http-post.ts';
import { answerMaxBytes, informationalMax } from '../src/webhooks/post/outgoing-request.ts';
import { receivedMaxBytes } from '../src/webhooks/post/received-bound.ts';
import { addressesMax } from '../src/webhooks/post/receiver-connect.ts';
import {
  apartAtSlowMs,
  apartAtUntriedMs,
  attemptsAtQuickMax,
  attemptsAtSlowMax,
  attemptsAtUntriedMax,
  attemptsMax,
  attemptsPerTargetMax,
  attemptsPerUntriedMax,
  givenApart,
} from '../src/webhooks/send/fair-queue.ts';
import { recordedTogetherMax } from '../src/webhooks/send/sender.ts';
import { windowFull, windowQuick, windowSlow } from '../src/webhooks/send/subscription-queue.ts';
import { quickMs } from '../src/webhooks/send/target-health.ts';

type Row = readonly [what: string, much: number | string, meaning: string];

/** What owners of subscriptions and receivers meet. */
const receiverRows: readonly Row[] = [
  ['active subscriptions of one actor', number(subscriptionsPerActorMax), ''],
  [
    'active subscriptions of all actors',
    'SUBSCRIPTIONS_MAX',
    `16,384 with a memory budget of 256 MiB; from half of it on, an actor has at most 1/${partOfFree} of the free places`,
  ],
  ['event types of one subscription', eventTypesMax, ''],
  ['deliveries that have ended are kept', time(finishedKeptMs), ''],
  [
    'attempts at one subscription’s deliveries of one ledger at once',
    1,
    'so they come in the order of the ledger; a retry waits for its time and is overtaken',
  ],
  ['attempts at one target at once, a node', attemptsPerTargetMax, 'a target is an origin: scheme, host, port'],
  ['… of them before its first answer', attemptsPerUntriedMax, 'the first one shows how the target takes it'],
  ['one attempt', time(attemptTimeoutMs), 'name, connection, request, answer; a 2xx within it is success'],
  [
    'attempts at one delivery',
    deliveryWaitsMs.map(waitText).join(', '),
    'each counted from the end of the one before; then it is FAILED',
  ],
  ['a quick answer', time(quickMs), 'whatever its status'],
  ['addresses of one name that are looked at', addressesMax, 'IPv4 first; forbidden ones among them are not tried'],
  [
    'an answer',
    `${answerMaxBytes / 1_024} KiB`,
    'what is beyond it is not read, and the connection closed; the status counts',
  ],
  ['an answer’s headers', `${answerHeadersMaxBytes / 1_024} KiB`, 'beyond it the attempt has failed'],
  ['informational answers (1xx) before the answer', informationalMax, 'beyond it the attempt has failed'],
  [
    'all that is received for a request, TLS and chunks included',
    `${receivedMaxBytes / 1_024} KiB`,
    'beyond it the connection is closed; the attempt has failed if there is no status',
  ],
  [
    'deliveries of one subscription and ledger that may be sent again after a crash',
    2 * recordedTogetherMax,
    'those that were answered and whose record was not written yet',
  ],
];

/** What bounds the work of a node. */
const nodeRows: readonly Row[] = [
  ['attempts at once, a node', attemptsMax, ''],
  [
    '… at targets that answered the last one quickly',
    attemptsAtQuickMax,
    'of one owner as many as it leaves to the others',
  ],
  ['… at targets that were never tried', attemptsAtUntriedMax, apart(apartAtUntriedMs)],
  [
    '… at targets that did not answer the last one quickly',
    attemptsAtSlowMax,
    `dead ones among them; ${apart(apartAtSlowMs)}`,
  ],
  ['deliveries of one subscription in memory', windowQuick, 'the rest waits in the store'],
  ['… of a target that does not answer quickly', windowSlow, ''],
  [
    'deliveries in memory, a node',
    number(queueBounds(Number.POSITIVE_INFINITY).deliveriesMax),
    `at most one for each 16 KiB of the memory budget; beside them a subscription has ${windowFull}`,
  ],
];

/** The limits of a node's work for webhooks as the code has them: what, how much, and what it means. */
export function webhookLimitsTable(): string {
  return limitsTable(nodeRows);
}

/** The limits that owners of subscriptions and receivers meet. */
export function receiverLimitsTable(): string {
  return limitsTable(receiverRows);
}

/** When each attempt at a delivery begins. */
export function webhookScheduleTable(): string {
  const lines = deliveryWaitsMs.map((ms, at) => {
    const begins = ms === 0 ? waitText(ms) : `${waitText(ms)} after attempt ${at} has failed`;
    return `| ${at + 1} | ${begins} |`;
  });
  return ['| attempt | begins |', '|---|---|', ...lines].join('\n');
}

function limitsTable(rows: readonly Row[]): string {
  const lines = rows.map(([what, much, meaning]) => `| ${what} | ${much} | ${meaning} |`);
  return ['| limit | | |', '|---|---|---|', ...lines].join('\n');
}

function waitText(ms: number): string {
  return ms === 0 ? 'at once' : time(ms);
}

function number(value: number): string {
  return value.toLocaleString('en');
}

function apart(ms: number): string {
  return `the last ${givenApart(ms)} are given out ${time(ms)} apart, so that one is free again every ${time(ms)}`;
}

function time(ms: number): string {
  if (ms % 86_400_000 === 0) return `${ms / 86_400_000} days`;
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000} h`;
  return ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1_000} s`;
}
