import { type Database, open, type RootDatabase } from 'lmdb';

/**
 * The tables of one environment. Keys are bytes (keys.ts), values text, bytes or nothing.
 *
 *   heads       ledger → head; its LMDB version is the fence (fence.ts), on which every claim and append is conditional
 *   events      ledger | seq → row
 *   scopes      ledger | scope | seq → nothing
 *   commands    three windows of 24 hours (command-windows.ts): ledger | command → mark;  permanent: the same for ever
 *   cells       name → value; version: seq of its event
 *   lines       list | order → value
 *   snapshots   owner → snapshot
 *   records     kind | id → record; version: the record's version
 *   lookups     kind, name, value | order | id → nothing
 *   expiries    time | record → nothing
 *   facts       name → value: what the store remembers of itself
 */
export interface Tables {
  readonly root: RootDatabase<string, Uint8Array>;
  readonly heads: TextTable;
  readonly events: TextTable;
  readonly scopes: BytesTable;
  readonly commands: readonly [BytesTable, BytesTable, BytesTable];
  readonly permanentCommands: BytesTable;
  readonly cells: TextTable;
  readonly lines: TextTable;
  readonly snapshots: TextTable;
  readonly records: TextTable;
  readonly lookups: BytesTable;
  readonly expiries: BytesTable;
  readonly facts: TextTable;
}

export type TextTable = Database<string, Uint8Array>;
export type BytesTable = Database<Uint8Array, Uint8Array>;

/** Value of a table whose keys say everything. */
export const NOTHING = Buffer.alloc(0);

const TABLES_MAX = 24;
/**
 * A commit copies and writes every page that it touches, and an event on one of many ledgers touches pages that no other event does: so the
 * smaller the better. Rows beyond 2 KiB get pages of their own. Fixed when the data is made.
 */
const pageBytes = 4096;
/**
 * Read transactions at once, of all processes; each process that has the environment open takes one or a few. Must be
 * the same in every process.
 */
export const readersMax = 126;

const ignore = (): void => {};

/**
 * For the promise that lmdb-js makes of its own for the writes of each turn of the event loop, and shows to nobody: left without a handler it
 * ends the process when a commit fails. Whoever wrote has a promise too (commits.ts).
 */
function ignoreFailure(error: unknown): void {
  const real = error instanceof Error && 'commitError' in error ? error.commitError : null;
  if (real instanceof Promise) real.catch(ignore);
}

/** Of files that LMDB makes: they hold everybody's payloads. An option of lmdb-js that its types do not name. */
const ownersAlone = { permissionsMode: 0o600 };

/**
 * Opens the environment, and makes it where there is none (unless read-only).
 *
 * `overlappingSync: false`: a commit is told only after its fdatasync and the synchronous write of its meta page, and
 * readers see no commit before. The memory map starts small and doubles with the data, so no limit has to be configured.
 */
export function openTables(directory: string, options: { readonly readOnly?: boolean } = {}): Tables {
  const root: RootDatabase<string, Uint8Array> = open({
    ...ownersAlone,
    path: directory,
    noSubdir: false,
    overlappingSync: false,
    pageSize: pageBytes,
    readOnly: options.readOnly === true,
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
  return {
    root,
    heads: versioned('heads'),
    events: text('events'),
    scopes: bytes('scopes'),
    commands: [bytes('commands-0'), bytes('commands-1'), bytes('commands-2')],
    permanentCommands: bytes('commands-permanent'),
    cells: versioned('cells'),
    lines: text('lines'),
    snapshots: versioned('snapshots'),
    records: versioned('records'),
    lookups: bytes('lookups'),
    expiries: bytes('expiries'),
    facts: text('facts'),
  };
}
