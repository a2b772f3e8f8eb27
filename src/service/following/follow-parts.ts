import type { LedgerReading } from '../reading/ledger-reading.ts';
import type { FollowedLedgerParts } from './followed-ledger.ts';

export interface FollowersParts extends FollowedLedgerParts {
  readonly reading: LedgerReading;
  /** Beyond them streams are `overloaded`: new ones, or those of the actor with the most (FollowerSlots). */
  readonly bounds: { readonly total: number; readonly perActor: number };
  readonly heartbeatMs: number;
  /** How often a stream that delivers leaves a record in the access history. */
  readonly recordEveryMs: number;
  random(bytes: number): Uint8Array;
}
