import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../../..');
const filesOf = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(join(root, folder), { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => [name, readFileSync(join(root, folder, name), 'utf8')]),
  );

test('the README of the conformance kit lists each code that a verifier refuses with', () => {
  const sources = {
    ...filesOf('conformance/go/ledgerlog'),
    'ledgerlog.py': filesOf('conformance/python')['ledgerlog.py'],
  };
  const codesOf = (names: RegExp) =>
    new Set(
      Object.entries(sources)
        .filter(([name]) => names.test(name))
        .flatMap(([, text = '']) => [...text.matchAll(/(?:refuse|Refusal)\("(\w+)"/g)].map(([, code = '']) => code)),
    );
  const go = codesOf(/^(?!vectors).*\.go$/);
  expect(codesOf(/\.py$/)).toEqual(go);
  const [, listed = ''] = filesOf('conformance')['README.md']?.split('## Codes of refusals') ?? [];
  const rows = listed.split('\n').filter((line) => line.startsWith('| `'));
  expect(new Set(rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`(\w+)`/g)].map(([, code]) => code)))).toEqual(
    go,
  );
});
