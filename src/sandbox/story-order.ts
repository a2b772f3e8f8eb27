import type { LedgerTrustClient } from '../client/client.ts';
import type { Party } from './party.ts';

/** The order that the story is about: its parties, and what the steps so far have created. */
export interface StoryOrder {
  /** A client without a credential. */
  readonly visitor: LedgerTrustClient;
  readonly supplier: Party;
  readonly buyer: Party;
  readonly auditor: Party;
  readonly carrier: Party;
  readonly bank: Party;
  ledgerId: string;
  /** Master ids. */
  shipment: string;
  invoice: string;
  /** Hash of the PRODUCTION_STARTED event. */
  startedHash: string;
}
