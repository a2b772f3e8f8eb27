import { expect } from 'vitest';
import { names } from '../../../src/domain/event/projection.ts';
import type { Stand } from './scene.ts';

/** A change behind the service's back, and what verifying finds of it. */
export interface Damage {
  readonly name: string;
  readonly change: (stand: Stand) => Promise<unknown>;
  /** Types that every check finds. */
  readonly found: readonly string[];
  /** Found by --all alone: nothing in the ledger names it. */
  readonly byAll?: boolean;
}

const at = (row: string, line: number, change: (text: string) => string) =>
  row
    .split('\n')
    .map((text, index) => (index === line ? change(text) : text))
    .join('\n');
const [content, payload, seal] = [1, 2, 4];
const ids = ({ scene }: Stand) => ({
  ledger: scene.order.ledgerId,
  master: scene.master.uuid,
  other: scene.other.uuid,
});

const setRow = (seq: number, line: number, change: (text: string) => string) => async (stand: Stand) => {
  const row = await stand.row(seq);
  const changed = at(row, line, change);
  expect(changed).not.toBe(row);
  return stand.setRow(seq, changed);
};
const dropRow = (seq: number) => (stand: Stand) =>
  stand.run("DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = '' AND seq = ?", [
    ids(stand).ledger,
    seq,
  ]);
const setStatic = (column: string, value: unknown) => (stand: Stand) =>
  stand.run(`UPDATE ledger_event SET ${column} = ? WHERE ledger_id = ? AND bucket = 0`, [value, ids(stand).ledger]);

/** Changes bucket 1, which the log has not come to: its 15 events are in bucket 0. */
const putInBucket1 = (columns: string, ...values: readonly unknown[]) => {
  return (stand: Stand) =>
    stand.run(`INSERT INTO ledger_event (ledger_id, bucket, ${columns}) VALUES (?, 1${', ?'.repeat(values.length)})`, [
      ids(stand).ledger,
      ...values,
    ]);
};

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
    change: (stand) => stand.setRow(6, 'svc1\nnothing\nof\nthe\nkind'),
    found: ['unreadable_row'],
  },
  {
    name: 'a row of another seq',
    change: async (stand) => stand.setRow(6, await stand.row(8)),
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
    change: (stand) => stand.run('DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0', [ids(stand).ledger]),
    found: ['wrong_head'],
  },
  {
    name: 'a bucket behind the end, as after a restore of other moments',
    change: async (stand) => {
      await putInBucket1('head_seq, head_hash', 1_030, '1'.repeat(64))(stand);
      await putInBucket1('scope, seq, row', '', 1_024, await stand.row(14))(stand);
    },
    found: ['wrong_head'],
    byAll: true,
  },
  {
    name: 'a head without events in a bucket behind the end',
    change: putInBucket1('head_seq, head_hash', 1_030, '1'.repeat(64)),
    found: ['wrong_head'],
    byAll: true,
  },
  {
    name: 'events without a head in a bucket behind the end',
    change: putInBucket1('scope, seq, row', '', 1_024, 'svc1'),
    found: ['wrong_head'],
    byAll: true,
  },
  { name: 'a claim alone on a bucket behind the end', change: putInBucket1('fence', 'f'.repeat(32)), found: [] },
  {
    name: 'a master taken out of the list',
    change: (stand) => stand.run('DELETE FROM line WHERE list = ?', [names.mastersOf(ids(stand).ledger)]),
    found: ['projection_missing'],
  },
  {
    name: 'a line of another master',
    change: (stand) =>
      stand.run('UPDATE line SET value = ? WHERE list = ? AND line_order = ?', [
        '{"masterId":"x"}',
        names.mastersOf(ids(stand).ledger),
        '2'.padStart(16, '0'),
      ]),
    found: ['projection_wrong'],
  },
  {
    name: 'a line too many',
    change: (stand) =>
      stand.run('INSERT INTO line (list, line_order, value) VALUES (?, ?, ?)', [
        names.mastersOf(ids(stand).ledger),
        '5'.padStart(16, '0'),
        '{"masterId":"x"}',
      ]),
    found: ['projection_extra'],
  },
  {
    name: 'a ledger in a stranger’s list',
    change: (stand) =>
      stand.run('INSERT INTO line (list, line_order, value) VALUES (?, ?, ?)', [
        names.ledgersOf('0193a000-0000-7000-8000-000000000001'),
        `2026|${ids(stand).ledger}`,
        JSON.stringify({ ledgerId: ids(stand).ledger, role: 'buyer' }),
      ]),
    found: ['projection_extra'],
    byAll: true,
  },
  {
    name: 'a master without its facts',
    change: (stand) => stand.run('DELETE FROM cell WHERE key = ?', [names.master(ids(stand).master)]),
    found: ['projection_missing'],
  },
  {
    name: 'another value of a master',
    change: (stand) =>
      stand.run('UPDATE cell SET value = ? WHERE key = ?', ['{"masterId":"x"}', names.master(ids(stand).master)]),
    found: ['projection_wrong'],
  },
  {
    name: 'a closing that never was',
    change: (stand) =>
      stand.run('INSERT INTO cell (key, version, value) VALUES (?, ?, ?)', [
        names.ledgerClosed(ids(stand).ledger),
        9,
        '"2026-11-21T00:00:00.000Z"',
      ]),
    found: ['projection_extra'],
  },
  {
    name: 'a grant that never was',
    change: (stand) =>
      stand.run('INSERT INTO cell (key, version, value) VALUES (?, ?, ?)', [
        names.grant('ledger', ids(stand).ledger, '0193a000-0000-7000-8000-000000000001'),
        9,
        '{}',
      ]),
    found: ['projection_extra'],
    byAll: true,
  },
  {
    name: 'events taken out of their master',
    change: (stand) =>
      stand.run('DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = ?', [
        ids(stand).ledger,
        names.masterEvents(ids(stand).master),
      ]),
    found: ['projection_missing'],
  },
  {
    name: 'a master that readers find no events of',
    change: (stand) =>
      stand.run('DELETE FROM scope_bucket WHERE ledger_id = ? AND scope = ?', [
        ids(stand).ledger,
        names.masterEvents(ids(stand).master),
      ]),
    found: ['projection_missing'],
  },
  {
    name: 'an event put under a sibling',
    change: (stand) =>
      stand.run('INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, 0, ?, 6, ?)', [
        ids(stand).ledger,
        names.masterEvents(ids(stand).other),
        '6',
      ]),
    found: ['projection_extra'],
  },
  {
    name: 'a command’s key deleted',
    change: async (stand) => {
      const commandKeys = await stand.run('SELECT slot, id FROM command WHERE ledger_id = ? ALLOW FILTERING', [
        ids(stand).ledger,
      ]);
      expect(commandKeys.rowLength).toBe(1);
      const { slot, id } = commandKeys.first() ?? {};
      return stand.run('DELETE FROM command WHERE ledger_id = ? AND slot = ? AND id = ?', [
        ids(stand).ledger,
        slot,
        id,
      ]);
    },
    found: ['projection_missing'],
  },
  {
    name: 'a command’s key too many',
    change: (stand) =>
      stand.run('INSERT INTO command (ledger_id, slot, id, seq, fingerprint) VALUES (?, -1, ?, 6, ?)', [
        ids(stand).ledger,
        'a'.repeat(64),
        'b'.repeat(64),
      ]),
    found: ['projection_extra'],
  },
];
