import { expect, test } from 'vitest';
import { brokenOff } from '../../../src/cli/commands/copy.ts';
import { CliError } from '../../../src/cli/terminal/terminal.ts';
import { LedgerError } from '../../../src/domain/errors.ts';
import { CopyRefused } from '../../../src/maintenance/copy/copy-ledger.ts';
import { Fenced, OutcomeUnknown } from '../../../src/store/ledger-store.ts';
import { UnreadableRecord } from '../../../src/store/unreadable-record.ts';

test.each([
  ['writes of another process', new Fenced(), /^Another process writes to the ledgers of the keyspace: stop/],
  ['a write of unknown outcome', new OutcomeUnknown(null), /^Cassandra does not answer: /],
  ['an unavailable store', new LedgerError('unavailable', 'no'), /^Cassandra does not answer: /],
  ['a refusal', new CopyRefused('The target belongs to another installation.'), /^The target belongs to another/],
  ['a damaged record', new UnreadableRecord({ kind: 'actor', id: 'a', error: null }), /`ledger-trust scrub` names it/],
])('a copy that is broken off by %s ends in a sentence that says what to do', (_, error, sentence) => {
  const shown = brokenOff(error);
  expect(shown).toBeInstanceOf(CliError);
  expect((shown as CliError).message).toMatch(sentence);
});

test('any other error of a copy is shown as it is', () => {
  const error = new TypeError('a defect');
  expect(brokenOff(error)).toBe(error);
});
