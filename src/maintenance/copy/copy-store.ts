import { accessKeptMs } from '../../service/audit/access-history.ts';
import type { AccessLog } from '../../store/access-log.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { WholeStore } from '../../store/whole-store.ts';
import { forEachConcurrently } from '../scrub/for-each-concurrently.ts';
import { copyAccesses } from './copy-accesses.ts';
import { copyLedger } from './copy-ledger.ts';
import { checkOwner, copyRecords } from './copy-records.ts';
import { CopyRefused } from './refusal.ts';

const ledgersAtOnceMax = 16;
const historiesAtOnceMax = 8;
const dayMs = 24 * 60 * 60_000;
/** Sentences about refusals that are kept. Further ones are only counted. */
const refusalsMax = 100;

interface Stores {
  readonly ledgers: LedgerStore;
  readonly records: RecordStore;
  readonly access: AccessLog;
}

interface StoreCopyParts {
  readonly source: Stores & { readonly whole: WholeStore };
  readonly target: Stores;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with the number of events or records that are in the target now. */
  readonly progress: (done: { readonly what: 'events' | 'records'; readonly count: number }) => void;
}

/** The result of a copy. */
export interface StoreCopy {
  readonly ledgers: number;
  readonly events: number;
  readonly records: number;
  readonly histories: number;
  /** What was not copied, in sentences. `refusalCount` includes those that were not kept. */
  readonly refusals: readonly string[];
  readonly refusalCount: number;
}

/**
 * Copies a store that no node serves into another store: ledgers with their projections, records (identities, keys,
 * subscriptions, deliveries, stored answers) and access histories. Nothing in the target is changed. What the target
 * has already is skipped, so a copy that was interrupted resumes when it is run again.
 *
 * Throws CopyRefused before anything is written if the target belongs to another installation. A ledger or record that
 * cannot be copied is in `refusals`, and the rest is copied.
 */
export async function copyStore({ source, target, now, progress }: StoreCopyParts): Promise<StoreCopy> {
  await checkOwner(source.records, target.records);
  const total = { ledgers: 0, events: 0, records: 0, histories: 0 };
  const refusals: string[] = [];
  let refusalCount = 0;
  const refused = (sentence: string) => {
    refusalCount += 1;
    if (refusals.length < refusalsMax) refusals.push(sentence);
  };

  // Records first, so that the target belongs to these keys from the beginning, and what is copied can be verified at
  // any time.
  const kept = () => {
    total.records += 1;
    progress({ what: 'records', count: 1 });
  };
  const records = source.whole.records();
  await copyRecords({ records, target: target.records, nowMs: now(), copied: kept, refused });

  await forEachConcurrently(source.whole.ledgers(), ledgersAtOnceMax, async ({ ledgerId, head }) => {
    const copied = (count: number) => {
      total.events += count;
      progress({ what: 'events', count });
    };
    try {
      await copyLedger({ source: source.ledgers, target: target.ledgers, now, copied }, ledgerId, head);
      total.ledgers += 1;
    } catch (error) {
      if (!(error instanceof CopyRefused)) throw error;
      refused(error.message);
    }
  });

  // From the beginning of a day, so that a repeated copy appends the same hours.
  const since = Math.floor((now() - accessKeptMs) / dayMs) * dayMs;
  await forEachConcurrently(actorIds(source.whole), historiesAtOnceMax, async (actorId) => {
    await copyAccesses(source.access, target.access, actorId, since);
    total.histories += 1;
  });
  return { ...total, refusals, refusalCount };
}

function* actorIds(whole: WholeStore): Iterable<string> {
  for (const { kind, id } of whole.records()) if (kind === 'actor') yield id;
}
