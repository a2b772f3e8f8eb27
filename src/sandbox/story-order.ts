import type { LedgerTrustClient } from '../client/client.ts';
import type { Party } from './party.ts';

/** The one order that the story tells of: who takes part, and what the steps so far have made. */
export interface StoryOrder {
  /** Anyone: without a credential. */
  readonly visitor: LedgerTrustClient;
  readonly supplier: Party;
  readonly buyer: Party;
  readonly auditor: Party;
  readonly carrier: Party;
  readonly bank: Party;
  ledgerId: string;
  /** Masters. */
  shipment: string;
  invoice: string;
  /** Hash of PRODUCTION_STARTED. */
  startedHash: string;
}
