import type { EventEntry } from '../../src/actors/ledger/commit-listener.ts';
import { contentHash, contentJson, eventHash } from '../../src/domain/event/content.ts';
import type { LedgerEvent } from '../../src/domain/event/event.ts';
import { ledgerFacts } from '../../src/domain/event/facts.ts';
import { projectionsOf } from '../../src/domain/event/projection.ts';
import { formatRow } from '../../src/domain/event/row.ts';
import { sha256Hex } from '../../src/domain/keys/hash.ts';

/** A chain from its beginning, as its writer hands it to the store. */
export function chainEntries(list: readonly LedgerEvent[]): EventEntry[] {
  const [genesis] = list;
  return list.map((event) => {
    const facts = event.seq === 0 || genesis === undefined ? null : ledgerFacts(genesis);
    const { seq, prevHash, hash } = event;
    return { seq, prevHash, hash, row: formatRow(event), projections: projectionsOf(event, facts), event };
  });
}

/** The same, but the newest event has this payload, which nobody signed, and hashes that fit it. */
export function entriesEndingIn(payload: string, list: readonly LedgerEvent[]): EventEntry[] {
  const entries = chainEntries(list);
  const newest = entries.pop();
  if (newest === undefined) throw new Error('no event');
  const unsigned = { actorSigPayload: null, actorSigPayloadHash: null };
  const content = { ...newest.event, ...unsigned, payload, payloadHash: sha256Hex(payload) };
  const event = { ...content, contentHash: contentHash(contentJson(content)) };
  const hash = eventHash(event.prevHash, event.contentHash);
  return [...entries, { ...newest, hash, row: formatRow({ ...event, hash }), event: { ...event, hash } }];
}
