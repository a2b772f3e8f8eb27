import { type Database, open, type RootDatabase } from 'lmdb';

/**
 * The tables of one environment. Keys are bytes (keys.ts), values are text, bytes or empty.
 *
 *   heads              ledger → head; its LMDB version, the fence (stored-values.ts), is the condition of claims and
 *                      appends
 *   events             ledger | seq → row
 *   scopes             ledger | scope | seq → empty
 *   commands           ledger | command → seq and fingerprint (stored-values.ts), in windows of 24 hours
 *   permanentCommands  ledger | command → seq and fingerprint, for ever
 *   cells              name → value; its version is the seq of its event
 *   lines              list | order → value
 *   snapshots          owner → snapshot
 *   records            kind | id → record; its version is the record's version
 *   lookups            kind, name, value | order | id → empty
 *   expiries           time | record → empty
 *   access             blocks of access events (access-keys.ts), in windows of 15 days
 *   tiles              16 bytes of the owner's hash | level | index → hashes of a tree (stored-tile.ts)
 *   signedHeads        origin → signed head; its version is its size
 *   facts              name → value, of the store itself: which windows the tables hold, which versions are reserved
 */
export interface Tables {
  readonly root: RootDatabase<string, Uint8Array>;
  readonly heads: TextTable;
  readonly events: TextTable;
  readonly scopes: BytesTable;
  readonly commands: readonly BytesTable[];
  readonly permanentCommands: BytesTable;
  readonly cells: TextTable;
  readonly lines: TextTable;
  readonly snapshots: TextTable;
  readonly records: TextTable;
  readonly lookups: BytesTable;
  readonly expiries: BytesTable;
  readonly access: readonly BytesTable[];
  readonly tiles: BytesTable;
  readonly signedHeads: BytesTable;
  readonly facts: TextTable;
}

export type TextTable = Database<string, Uint8Array>;
export type BytesTable = Database<Uint8Array, Uint8Array>;

export const NOTHING = Buffer.alloc(0);

const TABLES_MAX = 32;
/**
 * Small, because a commit copies and writes every page that it touches, and with many ledgers each event touches pages
 * that no other event of the commit touches. Rows above 2 KiB get pages of their own. Fixed when the data is made.
 */
const pageBytes = 4096;
/** Most read transactions of all processes together. The same in every process. */
export const readersMax = 126;

const ignore = (): void => {};

/**
 * Handles the rejection of a promise that lmdb-js makes for the writes of each turn of the event loop: unhandled, a
 * failed commit would end the process. Each writer has a promise of its own (commits.ts).
 */
function ignoreFailure(error: unknown): void {
  const real = error instanceof Error && 'commitError' in error ? error.commitError : null;
  if (real instanceof Promise) real.catch(ignore);
}

/** Mode of the files that LMDB makes, which hold all payloads. The types of lmdb-js lack this option. */
const ownersAlone = { permissionsMode: 0o600 };

/**
 * Opens the environment. Makes it if there is none, unless `readOnly` is set.
 *
 * With `overlappingSync: false`, lmdb-js reports a commit only after its fdatasync and the synchronous write of its
 * meta page, and readers see no commit before that. The memory map starts small and doubles with the data, so that no
 * limit has to be configured.
 */
export function openTables(directory: string, { readOnly = false } = {}): Tables {
  const root: RootDatabase<string, Uint8Array> = open({
    ...ownersAlone,
    path: directory,
    noSubdir: false,
    overlappingSync: false,
    pageSize: pageBytes,
    readOnly,
    maxDbs: TABLES_MAX,
    maxReaders: readersMax,
    encoding: 'string',
    keyEncoding: 'binary',
  });
  root.on('beforecommit', () => queueMicrotask(() => root.committed.then(ignore, ignoreFailure)));
  const text = (name: string): TextTable => root.openDB({ name, encoding: 'string', keyEncoding: 'binary' });
  const versioned = (name: string): TextTable =>
    root.openDB({ name, encoding: 'string', keyEncoding: 'binary', useVersions: true });
  const bytes = (name: string): BytesTable => root.openDB({ name, encoding: 'binary', keyEncoding: 'binary' });
  const windows = (name: string, count: number): BytesTable[] =>
    Array.from({ length: count }, (_, slot) => bytes(`${name}-${slot}`));
  return {
    root,
    heads: versioned('heads'),
    events: text('events'),
    scopes: bytes('scopes'),
    commands: windows('commands', 3),
    permanentCommands: bytes('commands-permanent'),
    cells: versioned('cells'),
    lines: text('lines'),
    snapshots: versioned('snapshots'),
    records: versioned('records'),
    lookups: bytes('lookups'),
    expiries: bytes('expiries'),
    access: windows('access', 8),
    tiles: bytes('tiles'),
    signedHeads: root.openDB({ name: 'signed-heads', encoding: 'binary', keyEncoding: 'binary', useVersions: true }),
    facts: text('facts'),
  };
}
