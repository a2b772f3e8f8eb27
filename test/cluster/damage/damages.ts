import { expect } from 'vitest';
import { names } from '../../../src/domain/event/projection.ts';
import type { StoredScene } from './scene.ts';

/** A change in Cassandra, and what `cluster verify` finds. */
interface Damage {
  readonly name: string;
  readonly change: (stored: StoredScene) => Promise<unknown>;
  readonly found: readonly string[];
  /** Only --all finds it, because nothing in the ledger names it. */
  readonly byAll?: boolean;
}

const at = (row: string, line: number, change: (text: string) => string) =>
  row
    .split('\n')
    .map((text, index) => (index === line ? change(text) : text))
    .join('\n');
const [content, payload, seal] = [1, 2, 4];
const ids = ({ scene }: StoredScene) => ({
  ledger: scene.order.ledgerId,
  master: scene.master.uuid,
  other: scene.other.uuid,
});

const run = (cql: string, values: (of: ReturnType<typeof ids>) => readonly unknown[]) => (stored: StoredScene) =>
  stored.run(cql, values(ids(stored)));
const setRow = (seq: number, line: number, change: (text: string) => string) => async (stored: StoredScene) => {
  const row = await stored.row(seq);
  const changed = at(row, line, change);
  expect(changed).not.toBe(row);
  return stored.setRow(seq, changed);
};
const dropRow = (seq: number) =>
  run("DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = '' AND seq = ?", ({ ledger }) => [
    ledger,
    seq,
  ]);
const setStatic = (column: string, value: unknown) =>
  run(`UPDATE ledger_event SET ${column} = ? WHERE ledger_id = ? AND bucket = 0`, ({ ledger }) => [value, ledger]);
const insertLine = 'INSERT INTO line (list, line_order, value) VALUES (?, ?, ?)';
const stranger = '0193a000-0000-7000-8000-000000000001';
const noMaster = '{"masterId":"x"}';

/** Changes bucket 1. The log has no event there: its 15 events are in bucket 0. */
const putInBucket1 = (columns: string, ...values: readonly unknown[]) =>
  run(
    `INSERT INTO ledger_event (ledger_id, bucket, ${columns}) VALUES (?, 1${', ?'.repeat(values.length)})`,
    ({ ledger }) => [ledger, ...values],
  );

export const damages: readonly Damage[] = [
  { name: 'nothing', change: async () => {}, found: [] },
  {
    name: 'a payload changed',
    change: setRow(6, payload, (text) => text.replace('"n":2', '"n":7')),
    found: ['hash_mismatch'],
  },
  {
    name: 'a time changed',
    change: setRow(6, content, (text) => text.replace(/"created_at":"\d{4}/, '"created_at":"2020')),
    found: ['hash_mismatch'],
  },
  {
    name: 'a hash changed',
    change: setRow(6, seal, (text) => text.replace(/"hash":"\w{8}/, '"hash":"00000000')),
    found: ['hash_mismatch', 'broken_link'],
  },
  {
    name: 'a seal changed',
    change: setRow(1, seal, (text) => text.replace(/"authority_sig":".{4}/, '"authority_sig":"AAAA')),
    found: ['invalid_authority_sig'],
  },
  {
    name: 'a row that is no event',
    change: (stored) => stored.setRow(6, 'svc1\nnothing\nof\nthe\nkind'),
    found: ['unreadable_row'],
  },
  {
    name: 'a row of another seq',
    change: async (stored) => stored.setRow(6, await stored.row(8)),
    found: ['unreadable_row'],
  },
  { name: 'a row deleted', change: dropRow(6), found: ['missing_event'] },
  { name: 'the genesis deleted', change: dropRow(0), found: ['missing_event'] },
  { name: 'the newest row deleted', change: dropRow(14), found: ['wrong_head'] },
  { name: 'the head set back', change: setStatic('head_seq', 12), found: ['wrong_head'] },
  { name: 'the head set forward', change: setStatic('head_seq', 20), found: ['wrong_head'] },
  { name: 'the head’s hash changed', change: setStatic('head_hash', '1'.repeat(64)), found: ['wrong_head'] },
  {
    name: 'the whole log deleted',
    change: run('DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0', ({ ledger }) => [ledger]),
    found: ['wrong_head'],
  },
  {
    name: 'a bucket after the end, as after a restore of other moments',
    change: async (stored) => {
      await putInBucket1('head_seq, head_hash', 1_030, '1'.repeat(64))(stored);
      await putInBucket1('scope, seq, row', '', 1_024, await stored.row(14))(stored);
    },
    found: ['wrong_head'],
    byAll: true,
  },
  {
    name: 'a head without events in a bucket after the end',
    change: putInBucket1('head_seq, head_hash', 1_030, '1'.repeat(64)),
    found: ['wrong_head'],
    byAll: true,
  },
  {
    name: 'events without a head in a bucket after the end',
    change: putInBucket1('scope, seq, row', '', 1_024, 'svc1'),
    found: ['wrong_head'],
    byAll: true,
  },
  { name: 'a claim alone on a bucket after the end', change: putInBucket1('fence', 'f'.repeat(32)), found: [] },
  {
    name: 'a master taken out of the list',
    change: run('DELETE FROM line WHERE list = ?', ({ ledger }) => [names.mastersOf(ledger)]),
    found: ['projection_missing'],
  },
  {
    name: 'a line of another master',
    change: run('UPDATE line SET value = ? WHERE list = ? AND line_order = ?', ({ ledger }) => [
      noMaster,
      names.mastersOf(ledger),
      '2'.padStart(16, '0'),
    ]),
    found: ['projection_wrong'],
  },
  {
    name: 'a line too many',
    change: run(insertLine, ({ ledger }) => [names.mastersOf(ledger), '5'.padStart(16, '0'), noMaster]),
    found: ['projection_extra'],
  },
  {
    name: 'a ledger in a stranger’s list',
    change: run(insertLine, ({ ledger }) => [
      names.ledgersOf(stranger),
      `2026|${ledger}`,
      JSON.stringify({ ledgerId: ledger, role: 'buyer' }),
    ]),
    found: ['projection_extra'],
    byAll: true,
  },
  {
    name: 'a master without its facts',
    change: run('DELETE FROM cell WHERE key = ?', ({ master }) => [names.master(master)]),
    found: ['projection_missing'],
  },
  {
    name: 'another value of a master',
    change: run('UPDATE cell SET value = ? WHERE key = ?', ({ master }) => [noMaster, names.master(master)]),
    found: ['projection_wrong'],
  },
  {
    name: 'a closing that never was',
    change: run('INSERT INTO cell (key, version, value) VALUES (?, ?, ?)', ({ ledger }) => [
      names.ledgerClosed(ledger),
      9,
      '"2026-11-21T00:00:00.000Z"',
    ]),
    found: ['projection_extra'],
  },
  {
    name: 'a grant that never was',
    change: run('INSERT INTO cell (key, version, value) VALUES (?, ?, ?)', ({ ledger }) => [
      names.grant('ledger', ledger, stranger),
      9,
      '{}',
    ]),
    found: ['projection_extra'],
    byAll: true,
  },
  {
    name: 'events taken out of their master',
    change: run('DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = ?', ({ ledger, master }) => [
      ledger,
      names.masterEvents(master),
    ]),
    found: ['projection_missing'],
  },
  {
    name: 'a master that readers find no events of',
    change: run('DELETE FROM scope_bucket WHERE ledger_id = ? AND scope = ?', ({ ledger, master }) => [
      ledger,
      names.masterEvents(master),
    ]),
    found: ['projection_missing'],
  },
  {
    name: 'an event put under a sibling',
    change: run(
      'INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, 0, ?, 6, ?)',
      ({ ledger, other }) => [ledger, names.masterEvents(other), '6'],
    ),
    found: ['projection_extra'],
  },
  {
    name: 'a command’s key deleted',
    change: async (stored) => {
      const commandKeys = await stored.run('SELECT slot, id FROM command WHERE ledger_id = ? ALLOW FILTERING', [
        ids(stored).ledger,
      ]);
      expect(commandKeys.rowLength).toBe(1);
      const { slot, id } = commandKeys.first() ?? {};
      return stored.run('DELETE FROM command WHERE ledger_id = ? AND slot = ? AND id = ?', [
        ids(stored).ledger,
        slot,
        id,
      ]);
    },
    found: ['projection_missing'],
  },
  {
    name: 'a command’s key too many',
    change: run('INSERT INTO command (ledger_id, slot, id, seq, fingerprint) VALUES (?, -1, ?, 6, ?)', ({ ledger }) => [
      ledger,
      'a'.repeat(64),
      'b'.repeat(64),
    ]),
    found: ['projection_extra'],
  },
];
