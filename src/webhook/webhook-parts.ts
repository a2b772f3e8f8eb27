import type { Clock } from '../actors/clock.ts';
import type { Log } from '../log.ts';
import type { LedgerReading } from '../service/reading/ledger-reading.ts';
import type { SecretBox } from '../service/secret-box.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { RecordStore } from '../store/record-store.ts';
import type { PaceParts } from './pacing/pace.ts';
import type { Poster } from './posting/http-post.ts';
import type { WebhookMeter } from './webhook-meter.ts';

/** What webhooks of a node are made of. */
export interface WebhookParts extends PaceParts {
  readonly ledgers: LedgerStore;
  readonly records: RecordStore;
  readonly reading: LedgerReading;
  readonly secrets: SecretBox;
  readonly poster: Poster;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: WebhookMeter;
  /** Whether this node works for the ledger or subscription of this id; on a node that stands alone always. */
  ownsShardOf(id: string): boolean;
  /** Has the actor of a ledger on this node make certain what stands in it: answers its newest seq (Directory). */
  readBarrier(ledgerId: string): Promise<number>;
  /** Tells whoever works for a subscription that something may be due for it. null: there are no other nodes. */
  readonly tellOthers: ((subscriptionId: string) => void) | null;
}
