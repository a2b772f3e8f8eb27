import { names } from '../../../src/domain/event/projection.ts';
import { ledgerFoldVersion } from '../../../src/domain/ledger/ledger-state.ts';
import { masterFoldVersion } from '../../../src/domain/ledger/master-state.ts';

/** The ledger of one damage, one batch: 0 GENESIS, 1 opening, 2 master, 3 … 12 its notes, 13 a grant. */
export interface RowScene {
  readonly ledgerId: string;
  readonly masterId: string;
  /** An actor with a record. No other scene has these ids. */
  readonly actorId: string;
  /** A scene whose values are copied into this one. */
  readonly other: { readonly ledgerId: string; readonly masterId: string; readonly actorId: string };
  run(cql: string, ...params: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
}

interface RowDamage {
  readonly name: string;
  readonly table: string;
  readonly change: (scene: RowScene) => Promise<unknown>;
  /** At least one of these types is found. Empty: the damage is harmless, and nothing is found. */
  readonly found: readonly string[];
  /** What a reader of the ledger gets: issues, or all events. */
  readonly reads: 'issues' | 'whole';
  /** What reads of its master give, where that is not the ledger's id, all events, and lists of one master and link. */
  readonly ofMaster?: Readonly<Record<string, unknown>>;
}

const text = (value: unknown) => (value === null ? 'missing' : value === '' ? 'empty' : String(value).slice(0, 24));

const statics = (column: string, value: unknown, found: readonly string[], reads: RowDamage['reads']): RowDamage => ({
  name: `${column} ${text(value)}`,
  table: 'ledger_event',
  change: ({ run, ledgerId }) =>
    run(`UPDATE ledger_event SET ${column} = ? WHERE ledger_id = ? AND bucket = 0`, value, ledgerId),
  found,
  reads,
});

const anothers = (column: string, found: readonly string[], reads: RowDamage['reads']): RowDamage => ({
  name: `${column} of another ledger`,
  table: 'ledger_event',
  change: async ({ run, ledgerId, other }) => {
    const cql = `SELECT ${column} AS it FROM ledger_event WHERE ledger_id = ? AND bucket = 0 LIMIT 1`;
    const [row] = await run(cql, other.ledgerId);
    return run(`UPDATE ledger_event SET ${column} = ? WHERE ledger_id = ? AND bucket = 0`, row?.it, ledgerId);
  },
  found,
  reads,
});

const row = (
  bucket: number,
  scope: string | null,
  seq: number,
  value: unknown,
  damage: Partial<RowDamage>,
): RowDamage => ({
  name: `row ${text(value)} at bucket ${bucket}, scope ${scope ?? 'of the master'}, seq ${seq}`,
  table: 'ledger_event',
  change: ({ run, ledgerId, masterId }) =>
    run(
      'INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, ?, ?, ?, ?)',
      ...[ledgerId, bucket, scope ?? names.masterEvents(masterId), seq, value],
    ),
  found: ['damaged_row'],
  reads: 'whole',
  ...damage,
});

const column = (
  table: string,
  name: string,
  where: string,
  keyOf: (scene: RowScene) => readonly unknown[],
  values: readonly unknown[],
  found: readonly string[],
  reads: RowDamage['reads'] = 'whole',
): RowDamage[] =>
  values.map((value) => ({
    name: `${table}.${name} ${text(value)}`,
    table,
    change: (scene) => scene.run(`UPDATE ${table} SET ${name} = ? WHERE ${where}`, value, ...keyOf(scene)),
    found,
    reads,
  }));

const insert = (
  name: string,
  table: string,
  columns: string,
  valuesOf: (scene: RowScene) => readonly unknown[],
  damage: Partial<RowDamage> = {},
): RowDamage => ({
  name: `${table}: ${name}`,
  table,
  change: (scene) => {
    const values = valuesOf(scene);
    return scene.run(`INSERT INTO ${table} (${columns}) VALUES (${values.map(() => '?').join(', ')})`, ...values);
  },
  found: ['damaged_row'],
  reads: 'whole',
  ...damage,
});

/** Microseconds. */
const nextYear = (Date.now() + 365 * 86_400_000) * 1_000;

/** Writes columns of a row again, as they stand: at the present time, or ahead of it. */
const again = (
  table: string,
  columns: readonly string[],
  where: string,
  keyOf: (scene: RowScene) => readonly unknown[],
  using: '' | 'ahead' = '',
): RowDamage => ({
  name: `${table}: ${columns.join(', ')} again, as they stand${using && ', ahead'}`,
  table,
  change: async (scene) => {
    const [found] = await scene.run(
      `SELECT ${columns.join(', ')} FROM ${table} WHERE ${where} LIMIT 1`,
      ...keyOf(scene),
    );
    const set = columns.map((name) => `${name} = ?`).join(', ');
    const at = using === '' ? '' : `USING TIMESTAMP ${nextYear}`;
    const values = columns.map((name) => found?.[name]);
    return scene.run(`UPDATE ${table} ${at} SET ${set} WHERE ${where}`, ...values, ...keyOf(scene));
  },
  found: ['wrong_writetime'],
  reads: 'whole',
});

const bucket0 = 'ledger_id = ? AND bucket = 0';
const ledgerKey = ({ ledgerId }: RowScene) => [ledgerId];
const masterList = ({ ledgerId }: RowScene) => [names.mastersOf(ledgerId), '2'.padStart(16, '0')];

const actorKey = ({ actorId }: RowScene) => ['actor', actorId];
const hash = '1'.repeat(64);
/** An access event with an id and fields of other types. */
const eventOfWrongTypes = JSON.stringify([['01940000-0000-7000-8000-000000000000', 7, {}, 'GET', null, 'many', null]]);
/** A cell of an event that the log has not. */
const pendingAhead = JSON.stringify([0, [], [], [['k', Number.MAX_SAFE_INTEGER, 'v']], []]);
const garbage = ['', 'no JSON', '[]', '{}', '7'];

/** Each table and column of a keyspace, damaged in each way. */
export const rowDamages: readonly RowDamage[] = [
  { name: 'nothing', table: '', change: async () => {}, found: [], reads: 'whole' },
  ...[null, -5, 2 ** 52].map((seq) => statics('head_seq', seq, ['wrong_head'], 'issues')),
  statics('head_seq', 5, ['wrong_head'], 'issues'),
  statics('head_seq', 20, ['wrong_head'], 'issues'),
  ...[null, '', 'x', hash].map((value) => statics('head_hash', value, ['wrong_head'], 'issues')),
  anothers('head_hash', ['wrong_head'], 'issues'),
  statics('fence', null, ['damaged_row'], 'whole'),
  ...[null, -7, 13, 2 ** 52].map((seq) => statics('projected_seq', seq, ['damaged_row'], 'whole')),
  ...['x', '{}', '[0]', '[7,[],[],[],[]]', pendingAhead, '[3000000000,[],[],[],[]]'].map((value) =>
    statics('pending', value, ['damaged_row'], 'whole'),
  ),
  anothers('pending', ['damaged_row'], 'whole'),
  ...[null, '', 'x', 'svc1', 'svc1\n\n\n\n'].map((value) =>
    row(0, '', 6, value, { found: ['unreadable_row'], reads: 'issues' }),
  ),
  row(0, '', -3, 'x', {}),
  row(0, '', 5_000, 'x', {}),
  row(0, '', 14, 'x', { found: ['wrong_head'] }),
  row(1, '', 3, 'x', { found: ['wrong_head'] }),
  row(-1, '', 3, 'x', { found: ['wrong_head'] }),
  ...[null, '', 'NaN', '-1', '6 x'].map((value) => row(0, null, 6, value, {})),
  row(0, null, 500, '500', {}),
  row(0, null, 9_999, '9999', {}),
  ...column('ledger', 'bucket', 'ledger_id = ?', ({ ledgerId }) => [ledgerId], [-1, 9, 2 ** 31 - 1], ['damaged_row']),
  insert('a bucket that holds none', 'scope_bucket', 'ledger_id, scope, bucket', ({ ledgerId, masterId }) => [
    ...[ledgerId, names.masterEvents(masterId), 7],
  ]),
  insert('a bucket below 0', 'scope_bucket', 'ledger_id, scope, bucket', ({ ledgerId, masterId }) => [
    ...[ledgerId, names.masterEvents(masterId), -1],
  ]),
  insert('a command key without seq', 'command', 'ledger_id, slot, id, fingerprint', ({ ledgerId }) => [
    ledgerId,
    -1,
    'a',
    'b',
  ]),
  insert('a command key without fingerprint', 'command', 'ledger_id, slot, id, seq', ({ ledgerId }) => [
    ledgerId,
    -1,
    'a',
    3,
  ]),
  ...column('cell', 'version', 'key = ?', ({ ledgerId }) => [names.ledger(ledgerId)], [null], ['damaged_row']),
  ...column('cell', 'value', 'key = ?', ({ ledgerId }) => [names.ledger(ledgerId)], [null], ['damaged_row']),
  ...column('cell', 'value', 'key = ?', ({ ledgerId }) => [names.ledger(ledgerId)], garbage, ['projection_wrong']),
  ...column('cell', 'version', 'key = ?', ({ masterId }) => [names.master(masterId)], [null], ['damaged_row']),
  ...[
    ...column('cell', 'value', 'key = ?', ({ masterId }) => [names.master(masterId)], [null], ['damaged_row']),
    ...column('cell', 'value', 'key = ?', ({ masterId }) => [names.master(masterId)], garbage, ['projection_wrong']),
  ].map((damage) => ({ ...damage, ofMaster: { master: 'internal', masters: 0 } })),
  ...column(
    'line',
    'value',
    'list = ? AND line_order = ?',
    ({ ledgerId }) => [names.mastersOf(ledgerId), '2'.padStart(16, '0')],
    [null, ...garbage],
    ['projection_wrong'],
  ).map((damage) => ({ ...damage, ofMaster: { masters: 0 } })),
  insert('without anything', 'snapshot', 'owner, fold_version', ({ ledgerId }) => [ledgerId, 1]),
  ...['', 'no JSON', '{}', 'sealed1 AAAA {}'].map((state) =>
    insert(
      `a state that says ${text(state)}`,
      'snapshot',
      'owner, fold_version, seq, hash, state, saved_at',
      ({ ledgerId }) => [ledgerId, ledgerFoldVersion, 9, hash, state, 1],
      { found: ['wrong_snapshot'] },
    ),
  ),
  insert(
    'of a master, at a place that it has not',
    'snapshot',
    'owner, fold_version, seq, hash, state, saved_at',
    ({ masterId }) => [masterId, masterFoldVersion, 1, hash, '{}', 1],
    { found: ['wrong_snapshot'] },
  ),
  ...column('record', 'value', 'kind = ? AND id = ?', actorKey, [null, ...garbage], ['damaged_row']),
  ...column('record', 'version', 'kind = ? AND id = ?', actorKey, [null], ['damaged_row']),
  ...column('record', 'places', 'kind = ? AND id = ?', actorKey, [null, 'x', '[]', '[[[]],null]'], ['damaged_row']),
  {
    name: 'record.value of another actor',
    table: 'record',
    change: async ({ run, actorId, other }) => {
      const [found] = await run('SELECT value FROM record WHERE kind = ? AND id = ?', 'actor', other.actorId);
      return run('UPDATE record SET value = ? WHERE kind = ? AND id = ?', found?.value, 'actor', actorId);
    },
    found: ['damaged_row'],
    reads: 'whole',
  },
  {
    name: 'record_lookup: a row gone',
    table: 'record',
    change: async ({ run, actorId }) => {
      const list = "kind = 'actor' AND name = 'world' AND value = 'sandbox'";
      const rows = await run(`SELECT line_order, id, put_token FROM record_lookup WHERE ${list}`);
      const own = rows.find(({ id }) => id === actorId);
      const cql = `DELETE FROM record_lookup WHERE ${list} AND line_order = ? AND id = ? AND put_token = ?`;
      return run(cql, own?.line_order, actorId, own?.put_token);
    },
    found: ['damaged_row'],
    reads: 'whole',
  },
  ...['', 'x', '[]', '[[1]]', eventOfWrongTypes].map((events) =>
    insert(
      `events that say ${text(events)}`,
      'access_block',
      'actor_id, hour, ledger_id, first_id, count, events',
      ({ actorId }) => [actorId, 1, '', 'x', 1, events],
    ),
  ),
  again('ledger_event', ['head_seq', 'head_hash'], bucket0, ledgerKey, 'ahead'),
  again('ledger_event', ['fence'], bucket0, ledgerKey, 'ahead'),
  again('ledger_event', ['row'], `${bucket0} AND scope = '' AND seq = 6`, ledgerKey, 'ahead'),
  again(
    'ledger_event',
    ['row'],
    `${bucket0} AND scope = ? AND seq = 2`,
    ({ ledgerId, masterId }) => [ledgerId, names.masterEvents(masterId)],
    'ahead',
  ),
  again('cell', ['version', 'value'], 'key = ?', ({ ledgerId }) => [names.ledger(ledgerId)]),
  again('cell', ['value'], 'key = ?', ({ masterId }) => [names.master(masterId)], 'ahead'),
  again('line', ['value'], 'list = ? AND line_order = ?', masterList, 'ahead'),
  again('record', ['version', 'value', 'places'], 'kind = ? AND id = ?', actorKey, 'ahead'),
  insert('at the present time', 'ledger', 'ledger_id, bucket', ({ ledgerId }) => [ledgerId, 0], {
    found: ['wrong_writetime'],
  }),
  insert(
    'of another fold version that was saved ahead',
    'snapshot',
    'owner, fold_version, seq, hash, state, saved_at',
    ({ ledgerId }) => [ledgerId, 99, 9, hash, '{}', '9223372036854775807'],
  ),
  insert(
    'at the present time, of another fold version',
    'snapshot',
    'owner, fold_version, seq, hash, state, saved_at',
    ({ ledgerId }) => [ledgerId, 99, 9, hash, '{}', 1],
    { found: ['wrong_writetime'] },
  ),
  insert('a hint without a bucket', 'ledger', 'ledger_id', ({ ledgerId }) => [ledgerId]),
  insert('a hint of a ledger that has no event', 'ledger', 'ledger_id, bucket', ({ masterId }) => [masterId, 3]),
];
