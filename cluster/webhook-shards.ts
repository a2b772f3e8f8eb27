import { shardOf } from '../src/actors/routing/shard.ts';
import type { SharedWebhooks } from '../src/node/membership.ts';
import { type Clock, repeat } from '../src/runtime/clock/clock.ts';
import type { Leases } from './placement/leases.ts';

/** How often a node looks for shards that it gained or lost, and for subscriptions made on other nodes. */
const lookEveryMs = 1_000;
/** After this many looks the node also searches for due work without a message. */
const looksBetweenDue = 15;

interface WebhookShardsParts {
  readonly leases: Leases;
  readonly shardCount: number;
  readonly clock: Clock;
  readonly failed: (what: string, error: unknown) => void;
}

/**
 * Decides for which shards this node does the webhook work. The work for a shard starts once all active subscriptions
 * are known, because a cursor that moves without a subscription skips its events. It ends with the shard's lease.
 *
 * Two nodes may overlap at a hand-over: a delivery may then be sent twice, but versions prevent overwrites of records.
 */
export class WebhookShards {
  readonly #parts: WebhookShardsParts;
  readonly #working = new Set<number>();
  #webhooks: SharedWebhooks | null = null;
  #looks = 0;
  #cancel = () => {};

  constructor(parts: WebhookShardsParts) {
    this.#parts = parts;
  }

  /** Whether this node does the webhook work for the ledger or subscription. */
  ownsShardOf(id: string): boolean {
    const shard = this.#shardOf(id);
    return this.#working.has(shard) && this.#parts.leases.holds(shard);
  }

  /** Another node has reported that a delivery may be due for the subscription. */
  heard(subscriptionId: string): void {
    this.#webhooks?.heard(subscriptionId);
  }

  start(webhooks: SharedWebhooks): void {
    this.#webhooks = webhooks;
    const { clock, failed } = this.#parts;
    const look = () => this.#look(webhooks).catch((error) => failed('sharing webhooks', error));
    this.#cancel = repeat(clock, lookEveryMs, look);
  }

  stop(): void {
    this.#cancel();
  }

  async #look(webhooks: SharedWebhooks): Promise<void> {
    const { leases } = this.#parts;
    const gone = new Set([...this.#working].filter((shard) => !leases.holds(shard)));
    for (const shard of gone) this.#working.delete(shard);
    if (gone.size > 0) webhooks.giveUp((id) => gone.has(this.#shardOf(id)));
    const given = new Set(leases.held.filter((shard) => leases.holds(shard) && !this.#working.has(shard)));
    if (given.size === 0) await webhooks.catchUp();
    else
      await webhooks.takeOver(
        (id) => given.has(this.#shardOf(id)),
        () => {
          for (const shard of given) if (leases.holds(shard)) this.#working.add(shard);
        },
      );
    this.#looks += 1;
    if (this.#looks % looksBetweenDue === 0) webhooks.lookForDue();
  }

  #shardOf(id: string): number {
    return shardOf(id, this.#parts.shardCount);
  }
}
