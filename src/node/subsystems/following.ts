import { BackgroundLimiter } from '../../runtime/background-limiter.ts';
import { machineUtilization, threadProcessorMs } from '../../runtime/clock/system-clock.ts';
import { limits } from '../../runtime/limits/limits.ts';
import { followMeter, headMeter } from '../../service/following/follow-meter.ts';
import { FollowedPages } from '../../service/following/followed-pages.ts';
import { Followers } from '../../service/following/followers.ts';
import { GrantsMemory } from '../../service/following/grants-memory.ts';
import { LedgerHeads } from '../../service/following/ledger-heads.ts';
import type { ProvenLogs } from '../../service/proofs/proven-logs.ts';
import type { SealCheck } from '../../service/reading/seal-check.ts';
import type { NodeContext } from './context.ts';

/** The heads of followed ledgers. They hear of each commit of this node, and of those of other nodes. */
export function createHeads({ ledgers, clock, log, metrics, monotonicMs, membership }: NodeContext): LedgerHeads {
  const learned = headMeter(metrics.registry);
  return new LedgerHeads({ ledgers, clock, log, monotonicMs, learned, remote: membership?.remoteHeads ?? null });
}

/** The share of the main thread's time for followers while appends fill the machine. */
const busyShare = 0.02;

export function createFollowLimiter({ clock, monotonicMs }: NodeContext): BackgroundLimiter {
  const utilization = machineUtilization();
  return new BackgroundLimiter({ clock, monotonicMs, utilization, processorMs: threadProcessorMs, busyShare });
}

export function createFollowers(
  node: NodeContext,
  heads: LedgerHeads,
  seals: SealCheck,
  logs: ProvenLogs,
  limiter: BackgroundLimiter,
): Followers {
  const { config, ledgers, reading, clock, log, metrics, memory, random, monotonicMs } = node;
  const pages = new FollowedPages(limits.followPagesMaxBytes, {
    add: (bytes) => memory.add('read', bytes),
    release: (bytes) => memory.release('read', bytes),
  });
  const followers: Followers = new Followers({
    ...{ ledgers, reading, seals, heads, pages, logs, limiter, clock, log, random, monotonicMs },
    grantsMemory: new GrantsMemory(memory),
    meter: followMeter(
      metrics.registry,
      () => followers.count,
      () => pages.bytes,
    ),
    bounds: config.followers,
    heartbeatMs: limits.followHeartbeatMs,
    recordEveryMs: limits.followRecordEveryMs,
  });
  return followers;
}
