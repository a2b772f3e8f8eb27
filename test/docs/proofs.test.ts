import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { logVectors } from '../support/log-vectors.ts';
import { testDir } from '../support/running-node.ts';

const root = resolve(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/proofs.md'), 'utf8');
const blocksAfter = (mark: string, language: string) =>
  [...page.matchAll(new RegExp(`<!-- ${mark} -->\\n\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    ([, text]) => text ?? '',
  );
const script = blocksAfter('run', 'sh').join('\n');

function run(commands: string): { readonly code: number | null; readonly out: string; readonly err: string } {
  const { status, stdout, stderr } = spawnSync('bash', ['-c', commands], { cwd: testDir(), encoding: 'utf8' });
  return { code: status, out: stdout, err: stderr };
}

test('the commands of the worked example print what the page says', () => {
  expect(blocksAfter('run', 'sh')).toHaveLength(8);
  expect(run(script)).toEqual({ code: 0, out: blocksAfter('output', '').join(''), err: '' });
  expect(script).toContain(logVectors.ledger.proofs_in_whole[4]);
});

test.each([
  ['another record', 'record=a26f', 'record=b26f'],
  ['another index', 'index=4', 'index=5'],
  ['another origin', 'origin=ledger.example', 'origin=other.example'],
  ['another log key', 'log_key=W10Z', 'log_key=W10a'],
  ['another hash', '\nKO5V', '\nKO5W'],
  ['another size', '\n9\n', '\n8\n'],
  ['another signature', 'm5qL0aif', 'm5qL0aig'],
  ['another key id', 'm5qL0aif', 'm5qM0aif'],
  ['another old root', 'old_root=d8', 'old_root=d9'],
  ['another name of the service', 'printf ledger.example/v1', 'printf ledger.example/v2'],
  ['another authority', 'authority_key=PUAX', 'authority_key=PUAY'],
])('the commands of the worked example fail with %s', (_, from, to) => {
  expect(script.split(from)).toHaveLength(2);
  expect(run(script.replace(from, to)).code).not.toBe(0);
});
