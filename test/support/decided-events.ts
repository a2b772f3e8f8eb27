import { eventHash } from '../../src/domain/event/content.ts';
import type { LedgerEvent } from '../../src/domain/event/event.ts';
import { sha256Hex } from '../../src/domain/keys/hash.ts';
import { DecisionCheck } from '../../src/domain/ledger/decision-check.ts';
import type { DecisionFault, DecisionIssueType } from '../../src/domain/ledger/decision-fault.ts';
import { createMaster, openLedger } from './commands.ts';

export const opened = [openLedger(), createMaster()];

interface DecisionFinding extends DecisionFault {
  readonly eventId: string;
  readonly seq: number;
}

/** What DecisionCheck finds in these events. `latest`: the ISO time after which no event may be dated. */
export function checkDecisions(events: readonly LedgerEvent[], latest?: string): DecisionFinding[] {
  const check = new DecisionCheck(latest === undefined ? {} : { latest: () => latest });
  return events.flatMap((event) => check.take(event).map((fault) => ({ eventId: event.id, seq: event.seq, ...fault })));
}

export function typesOf(events: readonly LedgerEvent[], latest?: string): [number, DecisionIssueType][] {
  return checkDecisions(events, latest).map(({ seq, type }) => [seq, type]);
}

/** The last event with another content, hashed anew. */
export function withLast(events: readonly LedgerEvent[], change: Partial<LedgerEvent>): LedgerEvent[] {
  const last = events.at(-1);
  if (last === undefined) throw new Error('there is no event');
  const changed = { ...last, ...change };
  const contentHash = sha256Hex(JSON.stringify(changed));
  return [...events.slice(0, -1), { ...changed, contentHash, hash: eventHash(changed.prevHash, contentHash) }];
}

export function withPayload(events: readonly LedgerEvent[], change: Readonly<Record<string, unknown>>): LedgerEvent[] {
  const payload = { ...JSON.parse(events.at(-1)?.payload ?? '{}'), ...change };
  const sorted = Object.fromEntries(Object.entries(payload).sort(([a], [b]) => (a < b ? -1 : 1)));
  return withLast(events, { payload: JSON.stringify(sorted) });
}
