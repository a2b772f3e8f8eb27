import { LedgerError } from '../../../domain/errors.ts';
import { WeightedMap } from '../../../runtime/collections/weighted-map.ts';
import type { KeyedMutex } from '../../keyed-mutex.ts';
import {
  type Cell,
  type Claim,
  type CommandKeyRef,
  type FoundCommand,
  type Head,
  type LedgerEntry,
  type LedgerStore,
  type Line,
  OutcomeUnknown,
  type Page,
  type ScopeEntries,
  type ScopePage,
  type Snapshot,
  type StoredEntry,
} from '../../ledger-store.ts';
import { decodeStored, UnreadableRecord, unreadableRecord } from '../../unreadable-record.ts';
import { commandWindows, keyText, permanentSlot } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { type CqlSession, numberOf, textOf } from '../session/session.ts';
import { writeMutex } from '../session/write-mutex.ts';
import { areOfBucket, type BatchProjections, parsePending } from './batch-projections.ts';
import { batchOf, type KnownLedger, knownAfter, planBatch, unknownProjections, writeBatch } from './batch-write.ts';
import {
  type Batch,
  bucketEvents as bucketEventsByDefault,
  isSameHead,
  type LedgerLog,
  readBucketState,
} from './bucket.ts';
import { takeClaim } from './claiming.ts';
import { checkBatchKept } from './kept-writes.ts';
import { readLines } from './lines.ts';
import { bucketOfNext, findLogEnd, type LogEnd, lookAt } from './log-end.ts';
import { readLog } from './log-reading.ts';
import { writeProjections } from './projecting.ts';
import { ProjectionLag } from './projection-lag.ts';
import { readScopePage, readScopeSeqs } from './scopes.ts';
import { readSnapshot, writeSnapshot } from './snapshots.ts';

const FENCE_BYTES = 16;
/** Of known ledgers: 50,000 with four scopes each. */
const knownLedgersBytes = 32 * 1024 * 1024;
/** What a known ledger takes without its scopes, and what each of them takes. */
const knownLedgerBytes = 320;
const knownScopeBytes = 80;
/**
 * Pauses between attempts to read back a written batch, and to write its projections, ms. Then the outcome of the
 * append counts as unknown.
 */
const pausesMs: readonly number[] = [20, 100, 500];

const COMMANDS = preparedAtStart(
  'SELECT id, seq, fingerprint FROM command WHERE ledger_id = ? AND slot IN ? AND id IN ?',
);
const CELL = preparedAtStart('SELECT version, value FROM cell WHERE key = ?');

interface CassandraLedgerOptions {
  readonly session: CqlSession;
  /** Milliseconds since 1970. Only the retention of command keys and the choice of the newest snapshot depend on it. */
  readonly now: () => number;
  readonly random: (bytes: number) => Buffer;
  /** Events in a bucket, and most entries of an append. Fixed with the keyspace. Smaller values are for tests. */
  readonly bucketEvents?: number;
  readonly writesMax?: number;
}

/**
 * The ledgers of a keyspace. Paxos on the static columns of the bucket that takes the next event decides which claim
 * may append (bucket.ts, claiming.ts, batch-write.ts).
 *
 * Invariant: when a batch is written, all events before it have their projections. So only the newest batch of a ledger
 * can lack projections. Its bucket keeps them (`pending`), and a claim by any node completes them.
 */
export class CassandraLedgerStore implements LedgerStore {
  readonly #session: CqlSession;
  readonly #now: () => number;
  readonly #random: (bytes: number) => Buffer;
  readonly #bucketEvents: number;
  readonly #mutex: KeyedMutex;
  /**
   * Ledgers whose last known claim or write is this process's, and whose events all have their projections. A ledger is
   * forgotten if an operation fails. Then the next operation reads the store.
   */
  readonly #known = new WeightedMap<string, KnownLedger>(knownLedgersBytes);
  readonly #lag = new ProjectionLag();

  constructor({ session, now, random, bucketEvents = bucketEventsByDefault, writesMax }: CassandraLedgerOptions) {
    this.#mutex = writeMutex(writesMax);
    this.#session = session;
    this.#now = now;
    this.#random = random;
    this.#bucketEvents = bucketEvents;
  }

  claim(ledgerId: string): Promise<Claim> {
    return this.#mutex.take(ledgerId, 'rare', () => this.#claim(ledgerId));
  }

  async #claim(ledgerId: string): Promise<Claim> {
    const known = this.#known.get(ledgerId) ?? null;
    const newFence = () => this.#random(FENCE_BYTES).toString('hex');
    const { claim, end } = await takeClaim(this.#log(ledgerId), known?.bucket ?? null, newFence);
    this.#lag.claimed(claim);
    if (known === null || !isSameHead(known.head, claim.head)) {
      this.#known.delete(ledgerId);
      const unprojected = decodeStored({ kind: 'pending', id: ledgerId, value: end.state.pending }, parsePending);
      if (unprojected !== null) await this.#projectStored(ledgerId, unprojected, end.bucket, end.head);
    }
    const scopes: ReadonlySet<string> = known?.bucket === end.bucket ? known.scopes : new Set<string>();
    this.#know(ledgerId, { fence: claim.fence, head: claim.head, bucket: end.bucket, scopes, isReadBack: false });
    this.#lag.projected(ledgerId);
    return claim;
  }

  #know(ledgerId: string, known: KnownLedger): void {
    this.#known.set(ledgerId, known, knownLedgerBytes + known.scopes.size * knownScopeBytes);
  }

  #log(ledgerId: string): LedgerLog {
    return { session: this.#session, ledgerId, bucketEvents: this.#bucketEvents };
  }

  async append(claim: Claim, entries: readonly LedgerEntry[]): Promise<void> {
    const batch = batchOf(entries, this.#bucketEvents);
    await this.#mutex.take(claim.ledgerId, 'write', () => this.#append(claim, batch));
  }

  async #append({ ledgerId, fence, head }: Claim, batch: Batch): Promise<void> {
    const claim: Claim = { ledgerId, fence, head };
    const known = this.#known.get(ledgerId) ?? null;
    const { before, unprojected } = await planBatch(this.#session, claim, batch, known);
    const bucketBefore = before.head === null ? batch.bucket - 1 : batch.bucket;
    if (unprojected !== null) await this.#projectStored(ledgerId, unprojected, bucketBefore, batch.sealed);
    this.#known.delete(ledgerId);
    await writeBatch(this.#session, claim, batch, before);
    this.#lag.written(claim, batch.last, batch.rows.length);
    const isReadBack = known?.fence === fence && known.bucket === batch.bucket && known.isReadBack;
    try {
      if (!isReadBack) await withPauses(() => checkBatchKept({ session: this.#session, ledgerId }, batch));
      await this.#project(ledgerId, unknownProjections(batch.projections, known), before.head === null);
    } catch (error) {
      this.#lag.givenUp(ledgerId);
      // The batch is written, and the next claim completes its projections. It must not be answered as written before,
      // or if Cassandra has not kept it.
      throw new OutcomeUnknown(error);
    }
    this.#lag.projected(ledgerId);
    this.#know(ledgerId, knownAfter(fence, batch.last, batch.projections, known));
  }

  /**
   * How many events this process has written without knowing their projections to be written. The call starts a check
   * in the background: events that other nodes have projected since are no longer counted in the next call.
   */
  projectionLag(): number {
    void this.#lag.look((claim, head) => this.stands(claim, head));
    return this.#lag.events;
  }

  /**
   * Writes the projections that a bucket keeps. Throws UnreadableRecord if they are of another bucket or of events that
   * the log has not: their cells would hide those of later events.
   */
  async #projectStored(ledgerId: string, stored: BatchProjections, bucket: number, head: Head | null): Promise<void> {
    if (!areOfBucket(stored, bucket, head?.seq ?? -1))
      throw unreadableRecord('pending', ledgerId, 'It is not that of the newest batch.');
    await this.#project(ledgerId, stored, bucket > 0);
  }

  #project(ledgerId: string, projections: BatchProjections, isFirst: boolean): Promise<void> {
    return withPauses(() => writeProjections(this.#session, ledgerId, projections, isFirst, this.#now()));
  }

  async stands({ ledgerId, fence }: Claim, head: Head | null): Promise<boolean> {
    const bucket = bucketOfNext(head, this.#bucketEvents);
    const log = this.#log(ledgerId);
    const [state, before] = await Promise.all([
      readBucketState(log, bucket),
      bucket === 0 ? null : readBucketState(log, bucket - 1),
    ]);
    if (state.head !== null || bucket === 0) return state.fence === fence && isSameHead(state.head, head);
    const isOwn = state.fence === fence || (state.fence === null && before?.fence === fence);
    return isOwn && isSameHead(before?.head ?? null, head);
  }

  async head(ledgerId: string, signal?: AbortSignal): Promise<Head | null> {
    return (await this.#end(ledgerId, signal)).head;
  }

  #end(ledgerId: string, signal?: AbortSignal): Promise<LogEnd> {
    return findLogEnd(this.#log(ledgerId), this.#known.get(ledgerId)?.bucket ?? null, signal);
  }

  /**
   * The serial read of the last bucket with a head settles that head. All events in earlier buckets are settled: the
   * first batch of a bucket is written after a serial read of the bucket before, and a full bucket never changes.
   */
  async certainHead(ledgerId: string): Promise<Head | null> {
    const { bucket } = await this.#end(ledgerId);
    return (await lookAt(this.#log(ledgerId), bucket, true)).head;
  }

  read(ledgerId: string, from: number, limit: number, charsMax?: number): Promise<StoredEntry[]> {
    return readLog(this.#log(ledgerId), from, limit, charsMax);
  }

  readScope(ledgerId: string, scope: string, page: ScopePage): Promise<ScopeEntries> {
    return readScopePage(this.#log(ledgerId), scope, page);
  }

  scopeSeqs(ledgerId: string, scope: string, page: ScopePage): Promise<number[]> {
    return readScopeSeqs(this.#log(ledgerId), scope, page);
  }

  /**
   * Looks up permanent keys in their own slots only, and the other keys in the windows only: Cassandra takes 2 µs of
   * CPU for each id in each partition, found or not.
   */
  async findCommands(ledgerId: string, keys: readonly CommandKeyRef[]): Promise<Map<string, FoundCommand>> {
    const found = new Map<string, FoundCommand>();
    const bySlot = Map.groupBy(keys, ({ id, permanent }) => (permanent ? permanentSlot(id) : null));
    await Promise.all(
      Array.from(bySlot, ([slot, those]) =>
        this.#findInSlots(ledgerId, slot === null ? commandWindows(this.#now()) : [slot], those, found),
      ),
    );
    return found;
  }

  async #findInSlots(
    ledgerId: string,
    slots: readonly number[],
    keys: readonly CommandKeyRef[],
    found: Map<string, FoundCommand>,
  ): Promise<void> {
    const byKey = new Map(keys.map(({ id }) => [keyText(id), id]));
    const params = [keyText(ledgerId), slots, [...byKey.keys()]];
    for (const row of await this.#session.read({ cql: COMMANDS, params })) {
      const [id, seq] = [byKey.get(textOf(row, 'id') ?? ''), numberOf(row, 'seq') ?? 0];
      if (id === undefined || seq < (found.get(id)?.seq ?? 0)) continue;
      found.set(id, { seq, fingerprint: textOf(row, 'fingerprint') ?? '' });
    }
  }

  async cell(key: string): Promise<Cell | null> {
    const [row] = await this.#session.read({ cql: CELL, params: [keyText(key)] });
    if (row === undefined) return null;
    // A row that lacks a column is damaged. It counts as there: a cell may say that a ledger is closed.
    return { version: numberOf(row, 'version') ?? -1, value: textOf(row, 'value') ?? '' };
  }

  lines(list: string, page: Page): Promise<Line[]> {
    return readLines(this.#session, list, page);
  }

  snapshot(owner: string): Promise<Snapshot | null> {
    return readSnapshot(this.#session, owner, this.#now());
  }

  saveSnapshot(owner: string, snapshot: Snapshot): Promise<void> {
    return writeSnapshot(this.#session, owner, snapshot, this.#now());
  }
}

/** Attempts again what fails with a LedgerError, except with UnreadableRecord: damage stays. */
async function withPauses(attempt: () => Promise<void>): Promise<void> {
  for (const pauseMs of [...pausesMs, null]) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (pauseMs === null || !(error instanceof LedgerError) || error instanceof UnreadableRecord) throw error;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}
