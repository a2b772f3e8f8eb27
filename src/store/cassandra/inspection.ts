import { mapConcurrently } from '../../runtime/collections/map-concurrently.ts';
import type { StoredRecord } from '../record-store.ts';
import type {
  DamagedRow,
  FullBucket,
  NamesBesideLog,
  NewestBatch,
  ScopeEntry,
  StoredCell,
  StoredCommandKey,
  StoredLine,
  StoreInspection,
  StrayBucket,
  Walked,
} from '../store-inspection.ts';
import { partitionsCql, rowsOfPartition, tableChecks, wrongRows } from './damaged-rows.ts';
import { commandWindows, keyText, permanentSlots, textOfKey } from './keys.ts';
import { areOfBucket, parsePending, pendingProjections } from './log/batch-projections.ts';
import { bucketState, type LedgerLog, readBucketState } from './log/bucket.ts';
import { damagedLogRows, emptyBucketsMax } from './log/damaged-log-rows.ts';
import { findLogEnd } from './log/log-end.ts';
import { seqsIn } from './log/scopes.ts';
import { misdatedRows } from './misdated-rows.ts';
import { numberOf, textOf } from './session/session.ts';
import { walkRows, walkTokens } from './token-walk.ts';

const PARTITIONS =
  'SELECT DISTINCT ledger_id, bucket, token(ledger_id, bucket) AS place FROM ledger_event WHERE token(ledger_id, bucket) > ? LIMIT ?';
const HELD = 'SELECT seq, head_seq FROM ledger_event WHERE ledger_id = ? AND bucket = ? LIMIT 1';
const LAST =
  "SELECT seq, head_seq, head_hash FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' ORDER BY scope DESC, seq DESC LIMIT 1";
const HINTS = 'SELECT ledger_id, token(ledger_id) AS place FROM ledger WHERE token(ledger_id) > ? LIMIT ?';
const CELLS = 'SELECT key, version, value, token(key) AS place FROM cell WHERE token(key) > ? LIMIT ?';
const LISTS = 'SELECT DISTINCT list, token(list) AS place FROM line WHERE token(list) > ? LIMIT ?';
const LINES = 'SELECT line_order, value FROM line WHERE list = ? AND line_order > ? LIMIT ?';
const SCOPES = "SELECT scope, row FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope > ''";
const LISTED = 'SELECT bucket FROM scope_bucket WHERE ledger_id = ? AND scope = ? AND bucket = ?';
const PROJECTED =
  'SELECT projected_seq, head_seq, pending FROM ledger_event WHERE ledger_id = ? AND bucket = ? LIMIT 1';
const COMMANDS = 'SELECT id, seq, fingerprint FROM command WHERE ledger_id = ? AND slot = ? AND id > ? LIMIT ?';
const RECORDS =
  'SELECT kind, id, version, value, token(kind, id) AS place FROM record WHERE token(kind, id) > ? LIMIT ?';

const readsAtOnceMax = 16;

interface InspectionParts extends Omit<LedgerLog, 'ledgerId'> {
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Walks through a keyspace in the order of tokens, in pages, so that its memory does not grow with the data. */
export class CassandraInspection implements StoreInspection {
  readonly #parts: InspectionParts;

  constructor(parts: InspectionParts) {
    this.#parts = parts;
  }

  #log(ledgerId: string): LedgerLog {
    return { ...this.#parts, ledgerId };
  }

  async *ledgerIds(): AsyncIterable<Walked<string>> {
    for await (const { row, share } of walkTokens(this.#parts.session, PARTITIONS)) {
      const ledgerId = textOfKey(textOf(row, 'ledger_id') ?? '');
      if (numberOf(row, 'bucket') === 0) yield { found: ledgerId, share };
    }
    // A ledger whose first bucket is gone still has a hint of where its log ends.
    for await (const { row } of walkTokens(this.#parts.session, HINTS)) {
      const ledgerId = textOfKey(textOf(row, 'ledger_id') ?? '');
      const { fence, head } = await readBucketState(this.#log(ledgerId), 0);
      if (fence === null && head === null) yield { found: ledgerId, share: 1 };
    }
  }

  async *strayBuckets(): AsyncIterable<StrayBucket> {
    for await (const { row } of walkTokens(this.#parts.session, PARTITIONS)) {
      const [ledgerId, bucket] = [textOfKey(textOf(row, 'ledger_id') ?? ''), numberOf(row, 'bucket') ?? 0];
      if (bucket === 0) continue;
      if (bucket < 0) {
        yield { ledgerId, bucket, seq: -1, end: { bucket: 0, seq: -1 } };
        continue;
      }
      const [held] = await this.#parts.session.read({ cql: HELD, params: [keyText(ledgerId), bucket] });
      const seq = numberOf(held, 'seq') ?? numberOf(held, 'head_seq');
      if (seq === null) continue;
      // The bucket is read before the end: then a bucket that a growing ledger has reached is never beyond that end.
      const end = await findLogEnd(this.#log(ledgerId), null);
      if (bucket > end.bucket) yield { ledgerId, bucket, seq, end: { bucket: end.bucket, seq: end.head?.seq ?? -1 } };
    }
  }

  async *fullBuckets(ledgerId: string, headSeq: number): AsyncIterable<FullBucket> {
    // The head is in bucket `end`, or in the bucket before, which is full then.
    const end = Math.floor(headSeq / this.#parts.bucketEvents);
    for (let bucket = 0, empty = 0; bucket < end && empty < emptyBucketsMax; bucket++) {
      const [row] = await this.#parts.session.read({ cql: LAST, params: [keyText(ledgerId), bucket] });
      const lastSeq = numberOf(row, 'seq');
      empty = lastSeq === null ? empty + 1 : 0;
      if (lastSeq !== null) yield { bucket, lastSeq, head: bucketState(row).head };
    }
  }

  async newestBatch(ledgerId: string): Promise<NewestBatch> {
    const { bucket } = await findLogEnd(this.#log(ledgerId), null);
    const [row] = await this.#parts.session.read({ cql: PROJECTED, params: [keyText(ledgerId), bucket] });
    const projectedSeq = Math.max(-1, numberOf(row, 'projected_seq') ?? -1);
    try {
      const pending = parsePending(textOf(row, 'pending') ?? '');
      const isOther = pending !== null && !areOfBucket(pending, bucket, numberOf(row, 'head_seq') ?? -1);
      return { projectedSeq, pending: isOther ? null : pendingProjections(pending) };
    } catch {
      return { projectedSeq, pending: null };
    }
  }

  damagedRowsOf(ledgerId: string): AsyncIterable<DamagedRow> {
    return damagedLogRows(this.#log(ledgerId), this.#parts.now);
  }

  misdatedRows(names: NamesBesideLog): AsyncIterable<DamagedRow> {
    return misdatedRows(this.#parts.session, names, this.#parts.now);
  }

  async *damagedRows(): AsyncIterable<Walked<DamagedRow>> {
    for (const [at, check] of tableChecks.entries())
      for await (const { row: partition, share } of walkTokens(this.#parts.session, partitionsCql(check))) {
        const isSingle = check.clustering.length === 0;
        const rows = isSingle ? [partition] : rowsOfPartition(this.#parts.session, check, partition);
        for await (const row of rows) {
          for await (const found of wrongRows(this.#parts.session, check, row, this.#parts.now()))
            yield { found, share: (at + share) / tableChecks.length };
        }
      }
  }

  async *records(): AsyncIterable<Walked<StoredRecord>> {
    for await (const { row, share } of walkTokens(this.#parts.session, RECORDS)) {
      const [version, value] = [textOf(row, 'version'), textOf(row, 'value')];
      const [kind, id] = [textOf(row, 'kind') ?? '', textOf(row, 'id') ?? ''];
      if (version !== null && value !== null) yield { found: { kind: textOfKey(kind), id, version, value }, share };
    }
  }

  async scopeEntries(ledgerId: string, from: number, to: number): Promise<ScopeEntry[]> {
    const { bucketEvents } = this.#parts;
    const found: ScopeEntry[] = [];
    // The first seqs of a bucket may be in the bucket before, with the batch that filled that bucket.
    for (let bucket = Math.max(0, Math.floor(from / bucketEvents) - 1); bucket * bucketEvents < to; bucket++)
      for (const [scope, seqs] of await this.#scopesIn(ledgerId, bucket))
        for (const seq of seqs) if (seq >= from && seq < to) found.push({ scope, seq });
    return found;
  }

  /** The scopes that readers find in a bucket, with their seqs in it. */
  async #scopesIn(ledgerId: string, bucket: number): Promise<Map<string, number[]>> {
    const ledger = keyText(ledgerId);
    const rows = await this.#parts.session.read({ cql: SCOPES, params: [ledger, bucket] });
    const byScope = Map.groupBy(rows, (row) => textOf(row, 'scope') ?? '');
    const found = new Map<string, number[]>();
    await mapConcurrently([...byScope], readsAtOnceMax, async ([scope, own]) => {
      const listed = await this.#parts.session.read({ cql: LISTED, params: [ledger, scope, bucket] });
      const seqs = own.flatMap((row) => seqsIn(textOf(row, 'row') ?? ''));
      if (listed.length > 0) found.set(textOfKey(scope), seqs);
    });
    return found;
  }

  async *commandKeys(ledgerId: string): AsyncIterable<StoredCommandKey> {
    const slots = commandWindows(this.#parts.now());
    for (let slot = 1; slot <= permanentSlots; slot++) slots.push(-slot);
    for (const slot of slots)
      for await (const row of walkRows(this.#parts.session, COMMANDS, [keyText(ledgerId), slot], ['id'], [''])) {
        const [id, seq] = [textOfKey(textOf(row, 'id') ?? ''), numberOf(row, 'seq') ?? -1];
        yield { id, seq, fingerprint: textOf(row, 'fingerprint') ?? '' };
      }
  }

  async *cells(): AsyncIterable<Walked<StoredCell>> {
    for await (const { row, share } of walkTokens(this.#parts.session, CELLS)) {
      const [version, value] = [numberOf(row, 'version'), textOf(row, 'value')];
      if (version !== null && value !== null)
        yield { found: { key: textOfKey(textOf(row, 'key') ?? ''), version, value }, share };
    }
  }

  async *lines(): AsyncIterable<Walked<StoredLine>> {
    for await (const { row, share } of walkTokens(this.#parts.session, LISTS)) {
      const stored = textOf(row, 'list') ?? '';
      for await (const line of walkRows(this.#parts.session, LINES, [stored], ['line_order'], [''])) {
        const [order, value] = [textOf(line, 'line_order') ?? '', textOf(line, 'value') ?? ''];
        yield { found: { list: textOfKey(stored), order, value }, share };
      }
    }
  }
}
