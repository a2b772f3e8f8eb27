import { expect, test } from 'vitest';
import { formatVkey } from '../../../../src/domain/log/log-key.ts';
import { vectorKey } from '../../../support/log-keys.ts';
import { logVectors, refusalReasons } from '../../../support/log-vectors.ts';
import { identityPoint } from '../../../support/nonce-zero.ts';
import { runHere } from '../../../support/program-here.ts';
import { newShell } from '../../../support/shell.ts';

const { file } = newShell();
const { origin, vkey, leaf_data_hex: records, proofs_in_whole: proofs } = logVectors.ledger;
const record = records[4] ?? '';
const proof = file('proof', proofs[4] ?? '');
const good = ['--record', record, '--vkey', vkey];

test('a proof file verifies, by itself or with the expected index, also from stdin', async () => {
  for (const [args, input] of [
    [[proof, ...good], ''],
    [[proof, ...good, '--index', '4'], ''],
    [['-', ...good], proofs[4] ?? ''],
  ] as const)
    expect(await runHere(['proof', ...args], { input })).toEqual({
      code: 0,
      out: `included: index 4 of 9 in ${origin}\n`,
      err: '',
    });
});

test('--json shows the result as JSON', async () => {
  const { code, out } = await runHere(['proof', proof, ...good, '--json']);
  expect({ code, shown: JSON.parse(out) as unknown }).toEqual({
    code: 0,
    shown: { verified: true, origin, index: 4, size: 9 },
  });
});

test.each(logVectors.refused)('$what is refused, and the reason is named', async (refused) => {
  const name = formatVkey(refused.origin, vectorKey.publicKey);
  const args = ['--record', refused.record_hex, '--vkey', name, '--index', String(refused.index)];
  const reason = refusalReasons[refused.what] ?? expect.fail('a case without a reason');
  // What is no proof file ends as an input that cannot be read, with a sentence alone.
  const [code, said] = reason === 'malformed' ? [66, 'refused: This is no checkpoint.'] : [1, `(${reason})`];
  const shown = await runHere(['proof', file('refused', refused.proof), ...args]);
  expect(shown).toEqual({ code, out: '', err: expect.stringContaining(said) });
});

test.each([
  [['--record', records[5] ?? '', '--vkey', vkey], 1, 'not_included'],
  [[...good, '--index', '5'], 1, 'wrong_index'],
  [['--record', record, '--vkey', logVectors.masters[0]?.vkey ?? ''], 1, 'wrong_origin'],
  [['--record', 'abc', '--vkey', vkey], 64, '--record'],
  [['--record', record, '--vkey', 'x'], 64, '--vkey'],
  [['--record', record, '--vkey', formatVkey(origin, identityPoint)], 64, '--vkey'],
  [[...good, '--index', '-1'], 64, '--index'],
  [[...good, '--index', '9007199254740993'], 64, '--index'],
  [['--vkey', vkey], 64, '--record'],
])('%j ends with %i', async (args, code, said) => {
  expect(await runHere(['proof', proof, ...args])).toMatchObject({ code, out: '', err: expect.stringContaining(said) });
});

test.each([
  ['of this project', origin],
  ['of another service', 'sunlight.example/2026h1'],
])('a proof file %s with a line feed behind its note is refused, and the reason is named', async (_whose, name) => {
  const content = (proofs[4] ?? '').replaceAll(origin, name);
  const args = ['--record', record, '--vkey', formatVkey(name, vectorKey.publicKey)];
  expect(await runHere(['proof', file('line-feed', `${content}\n`), ...args])).toMatchObject({
    code: 66,
    err: expect.stringContaining('there are bytes after the note, such as the line feed that `jq -r` adds.'),
  });
});

test('a file that is not there, and one that is no proof, end with 66', async () => {
  for (const path of [`${proof}-missing`, file('text', 'text')])
    expect(await runHere(['proof', path, ...good])).toMatchObject({ code: 66, out: '' });
});
