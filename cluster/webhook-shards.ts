import type { Clock } from '../src/actors/clock.ts';
import { shardOf } from '../src/actors/shard.ts';
import type { SharedWebhooks } from '../src/membership.ts';
import type { Leases } from './placement/leases.ts';

/** How soon a node works for a shard that it was given, and knows of subscriptions that were made elsewhere. */
const lookEveryMs = 1_000;
/** Looks after which it is looked whether anything is due that nobody told of. */
const looksBetweenDue = 15;

export interface WebhookShardsParts {
  readonly leases: Leases;
  readonly shardCount: number;
  readonly clock: Clock;
  readonly failed: (what: string, error: unknown) => void;
}

/**
 * The webhooks of the shards that a node holds. A shard is worked for only once the subscriptions in force are known, since a cursor that
 * moved on without one of them would leave its events behind; and no longer than its lease is held. Two nodes that overlap at a
 * hand-over write over each other in nothing (cursors and deliveries have versions); a delivery that is under way then may be sent twice.
 */
export class WebhookShards {
  readonly #parts: WebhookShardsParts;
  readonly #working = new Set<number>();
  #webhooks: SharedWebhooks | null = null;
  #looks = 0;
  #stopped = false;
  #cancel = () => {};

  constructor(parts: WebhookShardsParts) {
    this.#parts = parts;
  }

  ownsShardOf(id: string): boolean {
    const shard = this.#shardOf(id);
    return this.#working.has(shard) && this.#parts.leases.holds(shard);
  }

  /** Another node says that something may be due. */
  heard(subscriptionId: string): void {
    this.#webhooks?.heard(subscriptionId);
  }

  start(webhooks: SharedWebhooks): void {
    this.#webhooks = webhooks;
    const look = async () => {
      await this.#look(webhooks).catch((error) => this.#parts.failed('sharing webhooks', error));
      if (!this.#stopped) this.#cancel = this.#parts.clock.after(lookEveryMs, () => void look());
    };
    void look();
  }

  stop(): void {
    this.#stopped = true;
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
