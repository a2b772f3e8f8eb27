import type { Clock } from '../runtime/clock/clock.ts';
import type { Log } from '../runtime/telemetry/log.ts';
import type { LedgerReading } from '../service/reading/ledger-reading.ts';
import type { SecretBox } from '../service/records/secret-box.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { RecordStore } from '../store/record-store.ts';
import type { BackgroundLimiterParts } from './background-limiter.ts';
import type { Poster } from './post/http-post.ts';
import type { WebhookMeter } from './webhook-meter.ts';

/** What the webhooks of a node need. */
export interface WebhookParts extends BackgroundLimiterParts {
  readonly ledgers: LedgerStore;
  readonly records: RecordStore;
  readonly reading: LedgerReading;
  readonly secrets: SecretBox;
  readonly poster: Poster;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: WebhookMeter;
  /**
   * Whether this node does the webhook work for the ledger or subscription with this id. Always true on a single node.
   */
  ownsShardOf(id: string): boolean;
  /** Passes a read barrier of the ledger's actor on this node. Resolves with the ledger's newest seq (Directory). */
  readBarrier(ledgerId: string): Promise<number>;
  /** Notifies the node that sends for a subscription that something may be due. null: there are no other nodes. */
  readonly tellOthers: ((subscriptionId: string) => void) | null;
}
