import { uuidFromBytes } from '../../domain/values/uuid.ts';
import type { TreeInspection } from '../store-inspection.ts';
import type { StoreStamp } from '../store-stamp.ts';
import type { Stores } from '../stores.ts';
import { UnreadableRecord } from '../unreadable-record.ts';
import { undamaged, type WholeLedger, type WholeRecord, type WholeStore } from '../whole-store.ts';
import { Commits } from './commits.ts';
import { stampOf } from './file/copy-mark.ts';
import { checkHoldsData } from './file/format.ts';
import { acquireServingLock } from './file/serving-lock.ts';
import { lookupPrefixBytes, orderIdOfKey } from './keys.ts';
import { parseHead } from './log/stored-values.ts';
import { storesIn } from './open.ts';
import { allEntries } from './ranges.ts';
import { lookupKeys } from './records/record-store.ts';
import { idOf, parseRecord } from './records/stored-record.ts';
import { openTables, type Tables } from './tables.ts';
import { treeInspection } from './trees/tree-inspection.ts';

interface WholeLmdb extends Stores, AsyncDisposable {
  readonly whole: WholeStore;
  readonly stamp: StoreStamp;
  readonly trees: TreeInspection;
}

interface WholeOptions {
  /** Whether tiles may be removed. Default: the directory is opened for reading only. */
  readonly mayRemove?: boolean;
}

/**
 * Opens a data directory that no node serves, for reading only unless tiles may be removed, and prevents nodes from
 * serving it meanwhile. Throws StartError if the directory has no data, has another format, or is in use.
 */
export async function openWholeLmdb(
  dataDir: string,
  now: () => number,
  { mayRemove = false }: WholeOptions = {},
): Promise<WholeLmdb> {
  checkHoldsData(dataDir);
  const lock = await acquireServingLock(dataDir);
  try {
    // Makes the tables that a directory of an older version lacks, which cannot be made when it is open for reading.
    await openTables(dataDir).root.close();
    const tables = openTables(dataDir, { readOnly: !mayRemove });
    const commits = new Commits(() => {});
    return {
      ...storesIn(tables, commits, now),
      stamp: stampOf(dataDir),
      whole: wholeStore(tables),
      trees: treeInspection(tables, commits),
      [Symbol.asyncDispose]: async () => {
        commits.close();
        await tables.root.close();
        await lock.release();
      },
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

function wholeStore(tables: Tables): WholeStore {
  return {
    size: () => {
      const size = { ledgers: 0, events: 0, records: 0 };
      for (const { head } of undamaged(headsIn(tables))) {
        size.ledgers += 1;
        size.events += head.seq + 1;
      }
      for (const _ of allEntries(tables.records)) size.records += 1;
      return size;
    },
    ledgers: () => headsIn(tables),
    records: () => recordsIn(tables),
    lookups: () => lookupsIn(tables),
    lookupsOf: (record) => lookupKeys(record).map(([text]) => text),
  };
}

/** Returns the result of `read`. If it throws UnreadableRecord or TypeError, returns that as an UnreadableRecord. */
function orDamage<T>(key: Uint8Array, idOf: (key: Uint8Array) => string, read: () => T): T | UnreadableRecord {
  try {
    return read();
  } catch (error) {
    if (error instanceof UnreadableRecord) return error;
    if (error instanceof TypeError) return new UnreadableRecord({ kind: 'LMDB', id: idOf(key), error });
    throw error;
  }
}

function* headsIn(tables: Tables): Iterable<WholeLedger | UnreadableRecord> {
  for (const { key, value } of allEntries(tables.heads)) {
    const head = orDamage(key, uuidFromBytes, () => parseHead(key, value));
    if (head instanceof UnreadableRecord) yield head;
    else if (head !== null) yield { ledgerId: uuidFromBytes(key), head };
  }
}

function* lookupsIn(tables: Tables): Iterable<{ readonly text: string; readonly id: string }> {
  for (const { key } of allEntries(tables.lookups))
    yield { text: Buffer.from(key).toString('latin1'), id: orderIdOfKey(key, lookupPrefixBytes).id };
}

function* recordsIn(tables: Tables): Iterable<WholeRecord | UnreadableRecord> {
  for (const { key, value: text } of allEntries(tables.records)) {
    const record = orDamage(key, idOf, () => parseRecord(key, text));
    if (record instanceof UnreadableRecord) {
      yield record;
      continue;
    }
    const { kind, id, value, lookups, expiresAt } = record;
    yield { kind, id, value, lookups, ...(expiresAt === null ? {} : { expiresAt }) };
  }
}
