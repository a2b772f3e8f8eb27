import { expect, test } from 'vitest';
import type { ClusterScrub } from '../../../cluster/cli/verify-ledgers.ts';
import { scrubJson, scrubText } from '../../../cluster/cli/verify-report.ts';
import { ledgerId } from '../../support/commands.ts';
import { runCli } from '../../support/scrub-cli.ts';

/** Clears a screen in two ways, ends a line and turns the direction of writing. */
const evil = '\u001b[2J\u009b2J\r\nGOOD\u202e';
const shownEvil = '\\u001b[2J\\u009b2J\\u000d\\u000aGOOD\\u202e';

const scrub: ClusterScrub = {
  ...{ ledgers: 1, events: 3, signatures: 3, outstanding: 0, written: 0, trees: null },
  findings: [
    { ledgerId: evil, seq: 1, type: 'unreadable_row', detail: `the event stored there is seq 1 of ledger ${evil}` },
    { ledgerId, seq: null, type: 'damaged_row', detail: 'it is damaged', table: 'record', key: `id=${evil}` },
  ],
  findingCount: 2,
  unchecked: [`ledger ${evil}: 1 events`],
};

test('the report of a store shows the control characters that the store holds as escapes', () => {
  const text = scrubText(scrub);
  expect(text.match(/[^\n\P{C}]|[\p{Zl}\p{Zp}]/gu)).toBeNull();
  expect(text.trimEnd().split('\n')).toHaveLength(6);
  expect(text).toContain(`ledger ${shownEvil} seq 1: the event stored there is seq 1 of ledger ${shownEvil}\n`);
  expect(text).toContain(`in record (id=${shownEvil}): `);
  expect(text).toContain(`  ? ledger ${shownEvil}: 1 events\n`);
});

test('the sentence without a result shows control characters as escapes', async () => {
  const { code, err } = await runCli({}, ['cluster', 'verify', '--all', '--authority', `absent ${evil}`]);
  expect({ code, err }).toEqual({ code: 66, err: expect.stringContaining(shownEvil) });
});

test('the report as JSON says the same with escapes', () => {
  const json = scrubJson(scrub);
  expect(json.match(/[^\n\P{C}]|[\p{Zl}\p{Zp}]/gu)).toBeNull();
  expect(JSON.parse(json)).toMatchObject({ findings: [{ ledger_id: evil }, { key: `id=${evil}` }] });
});
