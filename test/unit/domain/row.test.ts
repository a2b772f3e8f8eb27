import { describe, expect, test } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import { CorruptRow, formatRow, parseRow } from '../../../src/domain/event/row.ts';
import { append, commandKey, createMaster, ledgerId, openLedger, signature } from '../../support/commands.ts';
import { chainOf, only } from '../../support/world.ts';

const chain = chainOf(
  openLedger(),
  createMaster({ signature: signature('svc:actor:a#key-1', '{"scope":"ORDER"}') }),
  append({
    payload: '{"note":"line\\nbreak \u2028 ü 😀"}',
    commandKeys: [commandKey('k1'), commandKey('s"1', 'f\\', true)],
  }),
);
const rows = chain.events.map((event) => formatRow(event));
const [genesisRow = '', , createdRow = '', appendedRow = ''] = rows;

/** A row with one of its five lines changed. */
function changed(row: string, line: number, change: (text: string) => string): string {
  const lines = row.split('\n');
  lines[line] = change(lines[line] ?? '');
  return lines.join('\n');
}

/** A row with members of its content or seal replaced; undefined leaves one out. */
function withMembers(row: string, line: 1 | 4, members: Record<string, unknown>): string {
  return changed(row, line, (text) => JSON.stringify({ ...JSON.parse(text), ...members }));
}

describe('an event and its row', () => {
  test.each(chain.events.map((event, at) => [`${event.seq} ${event.eventType}`, event, rows[at] ?? ''] as const))(
    '%s',
    (_, event, row) => {
      expect(parseRow(row)).toEqual(event);
      expect(formatRow(parseRow(row))).toBe(row);
      expect(row.split('\n')).toHaveLength(5);
    },
  );

  test('have the content hash of the stored bytes', () => {
    const spaced = changed(genesisRow, 1, (text) => text.replace('{', '{ '));
    expect(parseRow(spaced).contentHash).not.toBe(parseRow(genesisRow).contentHash);
    expect(parseRow(spaced).ledgerId).toBe(ledgerId);
  });

  test('have another content hash if a key of the content is doubled', () => {
    const twice = changed(genesisRow, 1, (text) => text.replace('"seq":0', '"seq":0,"seq":0'));
    expect(parseRow(twice).contentHash).not.toBe(parseRow(genesisRow).contentHash);
  });
});

describe('the format of a row', () => {
  const rest = genesisRow.slice('svc1'.length);
  test.each([`svc2${rest}`, `svc10${rest}`])('in %j is unknown and makes the ledger unavailable', (row) => {
    expect(() => parseRow(row)).toThrow(LedgerError);
    expect(() => parseRow(row)).toThrow(expect.objectContaining({ code: 'unavailable' }));
  });

  // Waiting mends none of these: readers are told of damage.
  test.each(['', 'svc1', 'svc1\r\n', ` svc1${rest}`, `\nsvc1${rest}`, '{}'])(
    'is missing in %j, which is a corrupt row',
    (row) => {
      expect(() => parseRow(row)).toThrow(CorruptRow);
    },
  );
});

describe('a corrupt row is detected when', () => {
  const damages: [string, string][] = [
    ['nothing behind the format', 'svc1\n'],
    ['a line is missing', genesisRow.split('\n').slice(0, 4).join('\n')],
    ['content is no JSON', changed(genesisRow, 1, (text) => text.slice(1))],
    ['content is an array', changed(genesisRow, 1, () => '[]')],
    ['content is null', changed(genesisRow, 1, () => 'null')],
    ['content is empty', changed(genesisRow, 1, () => '{}')],
    ['no id', withMembers(genesisRow, 1, { id: undefined })],
    ['id is a number', withMembers(genesisRow, 1, { id: 7 })],
    ['seq is text', withMembers(genesisRow, 1, { seq: '0' })],
    ['seq is negative', withMembers(genesisRow, 1, { seq: -1 })],
    ['seq is a fraction', withMembers(genesisRow, 1, { seq: 0.5 })],
    ['created_at is null', withMembers(genesisRow, 1, { created_at: null })],
    ['actor_id is an object', withMembers(genesisRow, 1, { actor_id: {} })],
    ['master is text', withMembers(createdRow, 1, { master: 'x' })],
    ['master has no seq', withMembers(createdRow, 1, { master: { id: 'x', prev_hash: '' } })],
    ['seal is no JSON', changed(genesisRow, 4, () => '{')],
    ['hash is no hash', withMembers(genesisRow, 4, { hash: 'zz'.repeat(32) })],
    ['hash is short', withMembers(genesisRow, 4, { hash: 'ab' })],
    ['hash is upper case', withMembers(genesisRow, 4, { hash: 'AB'.repeat(32) })],
    ['prev_hash is no hash', withMembers(appendedRow, 4, { prev_hash: 'zz'.repeat(32) })],
    ['prev_hash is a number', withMembers(appendedRow, 4, { prev_hash: 12 })],
    ['authority_sig is a list', withMembers(genesisRow, 4, { authority_sig: [] })],
    ['commands are none', withMembers(genesisRow, 4, { commands: undefined })],
    ['a command has no fingerprint', withMembers(genesisRow, 4, { commands: [{ id: 'x', permanent: false }] })],
  ];

  test.each(damages)('%s', (_, row) => {
    expect(() => parseRow(row)).toThrow(CorruptRow);
  });

  test('the row is sound without the damage', () => {
    expect(only([parseRow(withMembers(genesisRow, 1, {}))]).seq).toBe(0);
  });
});
