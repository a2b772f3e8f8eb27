import { isDeepStrictEqual } from 'node:util';
import { authorityRules, readAuthority } from '../../service/authority/authority.ts';
import { whyRefused } from '../../service/authority/key-list.ts';
import { decodeForm } from '../../service/records/record-form.ts';
import { type AccessEvent, type AccessLog, accessKeptMs, accessTime } from '../../store/access-log.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { TreeInspection } from '../../store/store-inspection.ts';
import type { StoreStamp } from '../../store/store-stamp.ts';
import type { Stores } from '../../store/stores.ts';
import { undamaged, type WholeRecord, type WholeStore } from '../../store/whole-store.ts';
import { forEachConcurrently } from '../for-each-concurrently.ts';
import { CopyRefused, copyLedger } from './copy-ledger.ts';
import { completeLog, copyLog, isOfLog } from './copy-log.ts';

const ledgersAtOnceMax = 16;
const recordsAtOnceMax = 32;
const historiesAtOnceMax = 8;
const pageEvents = 2_000;
const hourMs = 60 * 60_000;
const dayMs = 24 * hourMs;
/** Sentences that are kept. Further refusals are only counted. */
const refusalsMax = 100;

interface StoreCopyParts {
  readonly source: Stores & { readonly whole: WholeStore; readonly stamp: StoreStamp; readonly trees: TreeInspection };
  readonly target: Stores & { readonly stamp: StoreStamp };
  /** LOG_ORIGIN of the target's nodes. null: that of the source. */
  readonly logOrigin: string | null;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with how many more events or records are in the target now. */
  readonly progress: (count: number) => void;
}

export interface StoreCopy {
  readonly ledgers: number;
  readonly events: number;
  readonly records: number;
  readonly histories: number;
  /** Signed heads. null: the target signs under another name, and takes none. */
  readonly signedHeads: number | null;
  /** What was not copied, in sentences. `refusalCount` includes those that were not kept. */
  readonly refusals: readonly string[];
  readonly refusalCount: number;
}

/**
 * Copies a store that no node serves into another store: ledgers with their projections, records, access histories,
 * and the signed heads if the target goes on under the same LOG_ORIGIN. Hashes of trees are made anew there. What the
 * target has already is skipped and not changed, so a copy that was interrupted resumes when it is run again.
 *
 * Throws CopyRefused before anything is written if the target belongs to another installation, or if the source is a
 * restored copy, lacks events that were signed, or has a list of the authority's keys that is not believed. A ledger or
 * record that cannot be copied is in `refusals`, and the rest is copied.
 */
export async function copyStore({ source, target, logOrigin, now, progress }: StoreCopyParts): Promise<StoreCopy> {
  await checkOwner(source.records, target.records);
  const serviceName = await copyLog(source, target, { logOrigin, now });
  const total = { ledgers: 0, events: 0, records: 0, histories: 0 };
  const refusals: string[] = [];
  let refusalCount = 0;
  const refused = (sentence: string) => {
    refusalCount += 1;
    if (refusals.length < refusalsMax) refusals.push(sentence);
  };

  // Records first, so that the target belongs to these keys from the beginning.
  const copied = () => {
    total.records += 1;
    progress(1);
  };
  const records = withoutLog(undamaged(source.whole.records()));
  await copyRecords({ records, target: target.records, nowMs: now(), copied, refused });

  await forEachConcurrently(undamaged(source.whole.ledgers()), ledgersAtOnceMax, async ({ ledgerId, head }) => {
    const copied = (count: number) => {
      total.events += count;
      progress(count);
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
  const signedHeads = serviceName === null ? null : await completeLog(source, target, serviceName);
  return { ...total, signedHeads, refusals, refusalCount };
}

function* withoutLog(records: Iterable<WholeRecord>): Iterable<WholeRecord> {
  for (const record of records) if (!isOfLog(record)) yield record;
}

function* actorIds(whole: WholeStore): Iterable<string> {
  for (const { kind, id } of undamaged(whole.records())) if (kind === 'actor') yield id;
}

/** Kind and id of the records that identify an installation, and what differs in another one. */
const ownerRecords = [
  ['authority', 'keys', 'its events are sealed by another authority'],
  ['node', 'secrets-key', 'its secrets are encrypted under another key'],
] as const;

/**
 * Throws CopyRefused if the target belongs to other keys, since copied data could not be verified or decrypted there.
 * The same if the source's list of the authority's keys is not believed. Throws UnreadableRecord if it is damaged.
 */
export async function checkOwner(source: RecordStore, target: RecordStore): Promise<void> {
  for (const [kind, id, how] of ownerRecords) {
    const [ours, theirs] = await Promise.all([source.get(kind, id), target.get(kind, id)]);
    if (ours === null)
      throw new CopyRefused('No node has ever served this data: there is nothing to copy; check DATA_DIR.');
    if (theirs !== null && !isSame({ kind, id, value: ours.value }, theirs.value))
      throw new CopyRefused(
        `The target belongs to another installation (${how}): copy into a keyspace that no node has served yet.`,
      );
  }
  const why = whyRefused(await readAuthority(source), []);
  if (why !== null)
    throw new CopyRefused(
      `The list of the authority's keys in DATA_DIR is not believed, because ${why}: run \`ledger-trust authority confirm\` first if a version before 0.2.0 wrote it last, and restore the record from a backup otherwise.`,
    );
}

/** Whether both stores mean the same. The list of the authority's keys may be signed in one of them alone. */
function isSame(ours: Pick<WholeRecord, 'kind' | 'id' | 'value'>, theirs: string): boolean {
  if (theirs === ours.value) return true;
  if (ours.kind !== authorityRules.kind) return false;
  try {
    const [one, two] = [ours, { ...ours, value: theirs }].map((record) => decodeForm(record, authorityRules).keys);
    return isDeepStrictEqual(one, two);
  } catch {
    // One of them is damaged.
    return false;
  }
}

interface RecordCopyParts {
  readonly records: Iterable<WholeRecord>;
  readonly target: RecordStore;
  readonly nowMs: number;
  readonly copied: () => void;
  /** Called with a sentence for each record that the target has as another one. */
  readonly refused: (sentence: string) => void;
}

/** Puts every record that has not expired and that the target lacks. Calls `copied` for every one that it has then. */
export async function copyRecords({ records, target, nowMs, copied, refused }: RecordCopyParts): Promise<void> {
  await forEachConcurrently(records, recordsAtOnceMax, async (record) => {
    if (record.expiresAt !== undefined && record.expiresAt <= nowMs) return;
    const put = await target.put({ ...record, replaces: 'absent' });
    if (put.ok || (put.current !== null && isSame(record, put.current.value))) copied();
    else
      refused(
        `The ${record.kind} ${record.id} stands in the target as another one, and is left as it is: it was changed there, or here since it was copied.`,
      );
  });
}

/**
 * Copies the access history of one actor, from `since` (milliseconds since 1970) on, by whole hours in order: so a
 * repeated copy writes the same events and none twice.
 */
export async function copyAccesses(
  source: AccessLog,
  target: AccessLog,
  actorId: string,
  since: number,
): Promise<void> {
  const hours = new Map<number, AccessEvent[]>();
  // A history is nearly in the order of time: no event is out of place by more than an hour.
  const flush = async (before: number) => {
    for (const [hour, events] of hours) {
      if (hour >= before) continue;
      hours.delete(hour);
      await target.append(events.sort((a, b) => (a.id < b.id ? -1 : 1)));
    }
  };
  for (let offset = 0; ; offset += pageEvents) {
    const page = { ledgerId: null, since, limit: pageEvents, offset, descending: false };
    const events = await source.list(actorId, page);
    for (const event of events) {
      const hour = Math.floor(accessTime(event.id) / hourMs);
      const inHour = hours.get(hour);
      if (inHour === undefined) hours.set(hour, [event]);
      else inHour.push(event);
    }
    const last = events.at(-1);
    if (last === undefined || events.length < pageEvents) break;
    await flush(Math.floor(accessTime(last.id) / hourMs) - 1);
  }
  await flush(Number.POSITIVE_INFINITY);
}
