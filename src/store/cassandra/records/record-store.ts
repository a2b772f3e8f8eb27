import { LedgerError } from '../../../domain/errors.ts';
import type { KeyedMutex } from '../../keyed-mutex.ts';
import {
  type FindPage,
  type FoundRecord,
  type LookupName,
  type PutResult,
  type RecordStore,
  type RecordWrite,
  type StoredRecord,
  type Swept,
  TooManyDeleted,
  writeUnknown,
} from '../../record-store.ts';
import { unreadableRecord } from '../../unreadable-record.ts';
import { checkRecordWrite } from '../../write-checks.ts';
import { isReadFailure } from '../session/health.ts';
import { type CqlSession, MaybeApplied, type Statement, textOf } from '../session/session.ts';
import { writeMutex } from '../session/write-mutex.ts';
import { findRecords } from './record-finding.ts';
import {
  addPlaces,
  dropPlaces,
  formatPlaces,
  isRecordId,
  noPlaces,
  type Places,
  placesBeyond,
  placesFor,
  putStatement,
  type RecordRow,
  type ReplacedRow,
  readRecord,
  readToReplace,
  removeStatement,
} from './record-row.ts';
import { RecordSweep } from './record-sweep.ts';

const VERSION_BYTES = 16;
/** Pauses between attempts to settle a conditional write with an unknown outcome, ms. */
const settlingPausesMs: readonly number[] = [50, 250];
/** Most puts remembered that were not sent, to remove their index rows later. */
const unsentMax = 1_024;
const unsentAtOnce = 16;

interface Unsent {
  readonly kind: string;
  readonly id: string;
  readonly places: Places;
}

interface WrittenRow {
  readonly version: string;
  /** null for a removal. */
  readonly value: string | null;
  readonly places: Places;
}

/** `unsure`: the row has another version, and it cannot be known whether this write was applied before that version. */
type Outcome = 'applied' | 'refused' | 'unsure';

/**
 * The records of a keyspace. Each write is conditional on the record's version, by Paxos. Versions are random and never
 * used again, so a conditional write can be sent again to settle its outcome: it cannot be applied twice.
 */
export class CassandraRecordStore implements RecordStore {
  readonly #session: CqlSession;
  readonly #random: (bytes: number) => Buffer;
  readonly #mutex: KeyedMutex;
  readonly #sweep: RecordSweep;
  readonly #passedOn = new Map<string, { readonly row: ReplacedRow; readonly readFrom: number }>();
  /** Operations that were called and reads that were begun so far. */
  #begun = 0;
  readonly #unsent: Unsent[] = [];

  constructor(session: CqlSession, random: (bytes: number) => Buffer, writesMax?: number) {
    this.#mutex = writeMutex(writesMax);
    this.#session = session;
    this.#random = random;
    this.#sweep = new RecordSweep(session, (kind, id, version) => this.remove(kind, id, version));
  }

  async get(kind: string, id: string): Promise<StoredRecord | null> {
    return isRecordId(id) ? (await readRecord(this.#session, kind, id)).shown : null;
  }

  async put(write: RecordWrite): Promise<PutResult> {
    checkRecordWrite(write);
    const copied: RecordWrite = { ...write, lookups: write.lookups.map((lookup) => ({ ...lookup })) };
    const { kind, id, replaces } = write;
    const refused = ({ shown }: RecordRow): PutResult => ({ ok: false, current: shown });
    return this.#replacing(kind, id, replaces, refused, (before) => this.#put(copied, before));
  }

  /**
   * Runs `work` with the record's row, under the mutex of the record, if the row has version `replaces`. Otherwise
   * returns what `refused` does, and passes the row on to the next waiting operation. That one need not read it again
   * if it was called before the read of the row began.
   */
  #replacing<T>(
    kind: string,
    id: string,
    replaces: string,
    refused: (found: RecordRow) => T,
    work: (before: ReplacedRow) => Promise<T>,
  ): Promise<T> {
    const key = JSON.stringify([kind, id]);
    const calledAt = this.#begun++;
    return this.#mutex.take(key, 'write', async () => {
      const passed = this.#passedOn.get(key);
      this.#passedOn.delete(key);
      const isPassed = passed !== undefined && passed.readFrom > calledAt;
      const readFrom = isPassed ? passed.readFrom : this.#begun++;
      const row = isPassed ? passed.row : await readToReplace(this.#session, kind, id);
      if ((row.shown?.version ?? 'absent') === replaces) return work(row);
      if (this.#mutex.hasWaiting(key)) this.#passedOn.set(key, { row, readFrom });
      return refused(row);
    });
  }

  async #put({ kind, id, value, lookups, expiresAt }: RecordWrite, before: ReplacedRow): Promise<PutResult> {
    const version = this.#newVersion();
    const places = placesFor(lookups, expiresAt ?? null, before.places, version);
    const added = placesBeyond(places, before.places);
    const outcome = await this.#putPlaced(kind, id, added, () =>
      this.#settle(putStatement(kind, id, { version, value, places }, before.version), version),
    );
    if (outcome === 'unsure') throw writeUnknown();
    if (outcome === 'refused') {
      await this.#tidy(kind, id, added);
      return { ok: false, current: await this.get(kind, id) };
    }
    if (before.isAhead) await this.#checkKept(kind, id, before, { version, value, places });
    this.#tidyUnsent();
    await this.#tidy(kind, id, placesBeyond(before.places, places));
    return { ok: true, version };
  }

  /** If the record was certainly not sent, its index rows are removed later. */
  async #putPlaced(kind: string, id: string, places: Places, put: () => Promise<Outcome>): Promise<Outcome> {
    try {
      await addPlaces(this.#session, kind, id, places);
      return await put();
    } catch (error) {
      if (error instanceof LedgerError && error.code !== 'outcome_unknown') this.#keepUnsent({ kind, id, places });
      throw error;
    }
  }

  async remove(kind: string, id: string, version: string): Promise<boolean> {
    if (!isRecordId(id)) return false;
    const refused = () => false;
    return this.#replacing(kind, id, version, refused, (before) => this.#remove(kind, id, version, before));
  }

  async #remove(kind: string, id: string, version: string, before: ReplacedRow): Promise<boolean> {
    if (before.shown === null) return false;
    const versionLeft = this.#newVersion();
    const outcome = await this.#settle(removeStatement(kind, id, versionLeft, version), versionLeft);
    if (outcome === 'unsure') throw writeUnknown();
    if (outcome === 'refused') return false;
    if (before.isAhead)
      await this.#checkKept(kind, id, before, { version: versionLeft, value: null, places: noPlaces });
    await this.#tidy(kind, id, before.places);
    return true;
  }

  find(kind: string, lookup: LookupName, page: FindPage): Promise<FoundRecord[]> {
    return findRecords(this.#session, kind, lookup, page).catch((error: unknown) => {
      throw error instanceof LedgerError && isReadFailure(error.cause) ? new TooManyDeleted(error) : error;
    });
  }

  sweep(now: number, limit: number): Promise<Swept> {
    return this.#sweep.sweep(now, limit);
  }

  /** Sends a conditional write until its outcome is certain. `version` is the version that it writes. */
  async #settle(statement: Statement, version: string): Promise<Outcome> {
    let sentBefore = false;
    for (const pauseMs of [...settlingPausesMs, null]) {
      try {
        const { applied, row } = await this.#session.decide([statement]);
        if (applied || textOf(row, 'version') === version) return 'applied';
        return sentBefore ? 'unsure' : 'refused';
      } catch (error) {
        if (error instanceof MaybeApplied) sentBefore = true;
        else if (!sentBefore) throw error;
        if (pauseMs === null) throw writeUnknown(error);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
    throw writeUnknown();
  }

  /**
   * Throws UnreadableRecord if Cassandra has acknowledged a write and kept cells that are dated ahead. Versions are
   * never used again, so a third version is that of a later write.
   */
  async #checkKept(kind: string, id: string, before: RecordRow, written: WrittenRow): Promise<void> {
    const { version, shown, places } = await readRecord(this.#session, kind, id);
    if (version !== written.version && version !== before.version) return;
    const isKept = version === written.version && (shown?.value ?? null) === written.value;
    if (isKept && formatPlaces(places) === formatPlaces(written.places)) return;
    throw unreadableRecord(
      kind,
      id,
      'cells of its row in the table record are dated ahead, so that Cassandra does not keep what is written to them: see "Cells that are dated wrongly" in docs/operations.md',
    );
  }

  /** Removes index rows that no longer count. Those that stay do no harm: reads check them against the record. */
  async #tidy(kind: string, id: string, places: Places): Promise<void> {
    if (places.lookups.length === 0 && places.expiry === noPlaces.expiry) return;
    await dropPlaces(this.#session, kind, id, places).catch((error: unknown) => {
      if (!(error instanceof LedgerError)) throw error;
    });
  }

  #keepUnsent(unsent: Unsent): void {
    if (this.#unsent.length < unsentMax) this.#unsent.push(unsent);
  }

  /** Removes index rows of puts that were not sent. Not awaited: what fails is tried again later. */
  #tidyUnsent(): void {
    for (const unsent of this.#unsent.splice(0, unsentAtOnce))
      dropPlaces(this.#session, unsent.kind, unsent.id, unsent.places).catch(() => this.#keepUnsent(unsent));
  }

  #newVersion(): string {
    return this.#random(VERSION_BYTES).toString('hex');
  }
}
