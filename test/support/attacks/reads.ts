import { ownLedger, type ReadAttackOptions, type ReadTarget, readOn } from './read-target.ts';

interface ReadsOf {
  readonly events: number;
  readonly payloadBytes: number;
  readonly signed?: boolean;
  readonly query?: string;
  readonly abandonAfterMs?: number;
}

function readsOf({ events, payloadBytes, signed = false, query = 'event_type=NOPE', abandonAfterMs }: ReadsOf) {
  return async (
    target: ReadTarget,
    signal: AbortSignal,
    connections: number,
    options: ReadAttackOptions = {},
  ): Promise<void> => {
    const ledger = await ownLedger(target, signal, { events: options.events ?? events, payloadBytes, signed });
    return readOn(target, ledger, query, signal, connections, options, abandonAfterMs);
  };
}

/** Reads that look through many events and find none. */
export const readsFiltered = readsOf({ events: 3_000, payloadBytes: 1_000 });

/** Reads whose caller is gone after some milliseconds. */
export const readsAbandoned = readsOf({ events: 3_000, payloadBytes: 1_000, abandonAfterMs: 30 });

/** Reads that look through 10 MB of the largest events. */
export const readsLarge = readsOf({ events: 45, payloadBytes: 240_000 });

/** Reads that have a thousand signatures verified each. */
export const readsVerified = readsOf({ events: 1_000, payloadBytes: 100, signed: true, query: 'verify=signatures' });
