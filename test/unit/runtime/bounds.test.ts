import { describe, expect, test } from 'vitest';
import { clockOffMaxMs } from '../../../cluster/clock-check.ts';
import { leaveMaxMs } from '../../../cluster/membership.ts';
import { budgetMs, busyPeerBudgetMs } from '../../../cluster/peers/grpc-peers.ts';
import { revocationLeadMs } from '../../../cluster/start.ts';
import * as actors from '../../../src/actors/bounds.ts';
import { stopMaxMs } from '../../../src/cli/serve.ts';
import { delegatesMax, permissionsBytesMax } from '../../../src/domain/event/grant.ts';
import { requestValuesMax } from '../../../src/domain/json/json.ts';
import { countStepBytes } from '../../../src/rpc/http/response.ts';
import { limits } from '../../../src/runtime/limits/limits.ts';
import { budgetUnitBytes } from '../../../src/runtime/limits/memory-budget.ts';
import { accessRecordBytes, heldDeliveryBytes, queueBounds } from '../../../src/runtime/limits/queue-bounds.ts';
import { actorFreshMs } from '../../../src/service/actors/identities.ts';
import { historyBounds } from '../../../src/service/audit/access-history.ts';
import { keyFreshMs } from '../../../src/service/developers/entity-credentials.ts';
import { payloadBytesMax } from '../../../src/service/masters/payload.ts';
import { pageBytesMax } from '../../../src/service/reading/event-walk.ts';
import { eventTypesMax } from '../../../src/service/webhooks/webhooks.ts';

const mib = 1024 * 1024;

/** Relations between bounds of different mechanisms: each number must be smaller than the next one. */
function rising(...numbers: readonly number[]): void {
  for (const [at, number] of numbers.entries())
    if (at > 0) expect(number, `after ${numbers[at - 1]}`).toBeGreaterThan(numbers[at - 1] ?? 0);
}

describe('times', () => {
  test('a call has ended before its register, its peers and a stop give up on it', () => {
    rising(limits.deadlineSweepMs, limits.deadlineGraceMs, limits.callTimeoutMs, limits.serverStreamTimeoutMs);
    rising(budgetMs, limits.callTimeoutMs + limits.deadlineGraceMs, busyPeerBudgetMs);
    expect(limits.stopGraceMs).toBeGreaterThanOrEqual(limits.callTimeoutMs);
  });

  test('a node closes everything before a stop is cut short', () => {
    const { drainIdleMs, drainLingerMs, stopGraceMs } = limits;
    rising(
      drainIdleMs + drainLingerMs,
      stopGraceMs,
      stopGraceMs + drainLingerMs + historyBounds.lastFlushMs,
      stopMaxMs,
    );
  });

  test('a hand-over that saves no more snapshots has ended before a stop and the calls give up on it', () => {
    rising(actors.snapshotsLeavingMaxMs, leaveMaxMs, limits.callTimeoutMs);
  });

  test('a request has time for its headers, then for its body, and checks are more frequent than both', () => {
    rising(limits.connectionsCheckMs, limits.headersTimeoutMs, limits.requestTimeoutMs);
    rising(limits.grpcSweepMs, limits.grpcUnadmittedMs, limits.grpcMessageTimeoutMs);
  });

  test('a balancer closes idle connections first: after 60 s', () => {
    rising(60_000, limits.keepAliveTimeoutMs, limits.keepAliveTimeoutMs + limits.keepAliveBufferMs);
  });

  test('an answer that nobody takes ends within 30 s, and sooner the fuller the budget is', () => {
    rising(limits.answerLookMs, limits.answerStallRoomMs, limits.answerStallFullMs, limits.answerStallMs);
    expect(limits.answerStallMs + limits.answerSweepMs).toBeLessThan(30_000);
    expect(limits.answerStallMs + limits.answerUnreadLookMs).toBeLessThanOrEqual(30_000);
    expect(limits.grpcAnswerTimeoutMs).toBeLessThanOrEqual(30_000);
  });

  test('a revoked API key is refused within a second, and its streams have ended', () => {
    expect(keyFreshMs + limits.streamCredentialCheckMs).toBeLessThanOrEqual(1_000);
  });

  test('no node uses a revoked signing key after its end: what it cached is older than that by then', () => {
    expect(actorFreshMs + actors.keysReadAgeMaxMs + clockOffMaxMs).toBeLessThanOrEqual(revocationLeadMs);
  });

  test('a signed request is remembered for longer than its timestamp is taken', () => {
    rising(2 * limits.entityRequestSkewMs, limits.idempotencyStoredMs);
  });
});

describe('sizes', () => {
  test('gRPC receives a little more than the largest request, and sends a page and one more event', () => {
    rising(limits.requestBodyMaxBytes, limits.grpcReceiveMaxBytes);
    expect(pageBytesMax + actors.rowBytesMax).toBeLessThan(limits.grpcSendMaxBytes);
    // All delegates of an object at a time, with their ids.
    expect(delegatesMax * (permissionsBytesMax + 1024)).toBeLessThan(limits.grpcSendMaxBytes);
  });

  test('the largest payload fits into a row twice, with what the service adds to it', () => {
    const namesBytesMax = 8 * 1024;
    rising(2 * (payloadBytesMax + namesBytesMax), actors.rowBytesMax - actors.rowFrameBytesMax);
    rising(actors.eventOverheadBytes, actors.rowFrameBytesMax, actors.batchBytesMax, actors.rowBytesMax);
  });

  test('a request may have as many values as the largest payload holds, with the other fields of any method', () => {
    const fieldsMax = 100;
    rising(payloadBytesMax / 2 + fieldsMax + eventTypesMax, requestValuesMax);
  });

  test('a refused body is dropped up to more than the largest request', () => {
    rising(limits.dropMaxBytes, limits.requestBodyMaxBytes, limits.lingerMaxBytes);
  });

  test('one connection has a part of what the port has', () => {
    rising(limits.connectionStandardStreamsMax, limits.standardStreamsMax);
    rising(limits.connectionStandardStreamsMax, limits.grpcStreamsMax);
  });

  test('a request of HTTP counts in whole units of the memory budget', () => {
    expect(countStepBytes % budgetUnitBytes).toBe(0);
  });

  test('the history is written long before answers wait for it, and they wait before records are lost', () => {
    for (const budgetBytes of [32 * mib, 256 * mib]) {
      const { accessRecordsWait, accessRecordsMax } = queueBounds(budgetBytes);
      rising(historyBounds.flushRecords, accessRecordsWait, accessRecordsMax);
    }
  });

  test.each([16, 64, 256, 1_024])(
    'what waits behind the answers leaves most of a budget of %i MiB to calls',
    (size) => {
      const bounds = queueBounds(size * mib);
      const queuesBytes =
        bounds.deliveriesMax * heldDeliveryBytes +
        bounds.deliveryBlocksMaxBytes +
        bounds.eventBodiesMaxBytes +
        bounds.accessRecordsMax * accessRecordBytes;
      expect(queuesBytes / (size * mib)).toBeLessThan(0.4);
    },
  );
});

describe('actors', () => {
  test('64 commits wait for one ledger, half as many of the largest', () => {
    expect(actors.mailboxCommandsMax).toBe(64 * actors.batchEventsMax);
    expect(actors.largestBatchEvents).toBe(2 * actors.batchEventsMax);
    rising(actors.batchBytesMax, actors.mailboxBytesMax);
  });

  test('the tail to replay has at most 1,024 events, although one save is late', () => {
    expect(2 * (actors.snapshotEveryEvents + actors.largestBatchEvents)).toBeLessThanOrEqual(1_024);
    rising(actors.snapshotWhenLeavingEvents, actors.snapshotEveryEvents);
    rising(actors.snapshotRetryEvents, actors.snapshotEveryEvents);
  });

  test('ledgers leave memory sooner if there are too many', () => {
    rising(actors.passivateWhenFullAfterMs, actors.passivateAfterMs);
    rising(actors.ledgersLoadedBetweenSweeps, actors.ledgersInMemoryMax);
  });

  test('waits grow from their least to their greatest, and end before the caller’s time does', () => {
    rising(actors.claimBackoffMinMs, actors.backoffMaxMs, limits.callTimeoutMs);
    rising(
      actors.batchLimits.commitsTogether.maxDelayMs,
      actors.batchLimits.commitsApart.maxDelayMs,
      limits.callTimeoutMs,
    );
  });
});
