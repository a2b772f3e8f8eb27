import { interfaceAddresses, machineUtilization, threadProcessorMs } from '../../runtime/clock/system-clock.ts';
import type { SecretBox } from '../../service/records/secret-box.ts';
import type { TargetPolicy } from '../../service/webhooks/webhook-target.ts';
import { openWebhooks } from '../../webhooks/open-webhooks.ts';
import type { Webhooks } from '../../webhooks/webhooks.ts';
import type { NodeContext } from './context.ts';

/** `listening` returns the node's own ports. */
export function webhookTargets(node: NodeContext, listening: () => readonly number[]): TargetPolicy {
  const closed = [...node.config.webhookClosedPorts, ...(node.backendPorts ?? [])];
  return {
    production: node.production,
    ownPorts: () => new Set([...listening(), ...closed, ...(node.membership?.ports() ?? [])]),
    ownAddresses: interfaceAddresses,
  };
}

export function createWebhooks(
  node: NodeContext,
  secrets: SecretBox,
  policy: TargetPolicy,
  readBarrier: (ledgerId: string) => Promise<number>,
): Webhooks {
  const { ledgers, records, reading, memory, clock, log, metrics, membership, ownsShardOf, monotonicMs } = node;
  return openWebhooks({
    ...{ ledgers, records, reading, memory, secrets, policy, clock, log, ownsShardOf, readBarrier, monotonicMs },
    registry: metrics.registry,
    subscriptionsMax: node.config.subscriptionsMax,
    tellOthers: membership === undefined ? null : (id) => membership.tellOthers(id),
    utilization: machineUtilization(),
    processorMs: threadProcessorMs,
  });
}
