import { deliveryWaitsMs } from '../src/domain/values/delivery-schedule.ts';
import { answerHeadersMaxBytes, attemptTimeoutMs } from '../src/webhooks/post/http-post.ts';
import { answerMaxBytes } from '../src/webhooks/post/outgoing-request.ts';
import { addressesMax } from '../src/webhooks/post/receiver-connect.ts';
import { recordedTogetherMax } from '../src/webhooks/send/attempt-recording.ts';
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
import { heldMax, windowQuick, windowSlow, windowTight } from '../src/webhooks/send/subscription-queue.ts';
import { quickMs } from '../src/webhooks/send/target-health.ts';

/** The limits of sending webhooks as the code has them: what, how much, and what it means. */
const rows: readonly (readonly [string, number | string, string])[] = [
  [
    'attempts at one subscription’s deliveries of one ledger at once',
    1,
    'so they come in the order of the ledger; a retry waits for its time and is overtaken',
  ],
  ['attempts at one target at once, a node', attemptsPerTargetMax, 'a target is an origin: scheme, host, port'],
  ['… of them before its first answer', attemptsPerUntriedMax, 'the first one shows how the target takes it'],
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
  ['a quick answer', time(quickMs), 'whatever its status'],
  ['one attempt', time(attemptTimeoutMs), 'name, connection, request, answer; a 2xx within it is success'],
  [
    'attempts at one delivery',
    deliveryWaitsMs.map((ms) => (ms === 0 ? 'at once' : time(ms))).join(', '),
    'each counted from the end of the one before; then it is FAILED',
  ],
  ['addresses of one name that are tried', addressesMax, ''],
  [
    'an answer',
    `${answerMaxBytes / 1_024} KiB`,
    'what is beyond it is not read, and the connection closed; the status counts',
  ],
  ['an answer’s headers', `${answerHeadersMaxBytes / 1_024} KiB`, 'beyond it the attempt has failed'],
  ['deliveries of one subscription in memory', windowQuick, 'the rest waits in the store'],
  ['… of a target that does not answer quickly', windowSlow, ''],
  ['deliveries in memory, a node', heldMax.toLocaleString('en'), `beyond it a subscription has ${windowTight}`],
  [
    'deliveries of one subscription and ledger that may be sent again after a crash',
    2 * recordedTogetherMax,
    'those that were answered and whose record was not written yet',
  ],
];

export function webhookLimitsTable(): string {
  const lines = rows.map(([what, much, meaning]) => `| ${what} | ${much} | ${meaning} |`);
  return ['| limit | | |', '|---|---|---|', ...lines].join('\n');
}

function apart(ms: number): string {
  return `the last ${givenApart(ms)} are given ${time(ms)} apart, so that one is to be had within it`;
}

function time(ms: number): string {
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000} h`;
  return ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1_000} s`;
}
