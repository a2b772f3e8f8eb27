import { truncateSync } from 'node:fs';
import { expect, test } from 'vitest';
import { exitCodes } from '../../../src/cli/terminal/exit-codes.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';

const { file } = newShell();
const mebibyte = 1024 * 1024;

/** A file of so many zero bytes, which takes no space. */
function zeros(name: string, bytes: number): string {
  const path = file(name, '');
  truncateSync(path, bytes);
  return path;
}

const [whole, over] = [zeros('whole', mebibyte), zeros('over', mebibyte + 1)];
const answer = zeros('answer', 64 * mebibyte + 1);
const [small, exports] = [
  'is larger than 1 MiB: check that it is the right one.',
  'is larger than 64 MiB: name the file of an export, which may be of any size.',
];

test.each([
  ['a private key', ['keygen', '--from', over], `${over} ${small}`],
  ['a payload from stdin', ['append', 'x', '--type', 'A', '--payload', '-'], `stdin ${small}`],
  [
    'a certificate',
    ['verify', file('list.json', []), '--resolver', 'https://localhost', '--ca', over],
    `${over} ${small}`,
  ],
  ['a saved answer', ['verify', answer], `${answer} ${exports}`],
  ['a file of resolver documents', ['verify', file('none.json', []), '--keys', answer], `${answer} ${exports}`],
])('%s that is too large ends a command with 66 and says what to do', async (_, args, sentence) => {
  const input = Buffer.alloc(mebibyte + 1);
  const env = { LEDGER_TRUST_API_KEY: 'x', LEDGER_TRUST_URL: 'http://127.0.0.1:1' };
  const end = { code: exitCodes.input, out: '', err: `ledger-trust: ${sentence}\n` };
  expect(await runHere(args, { input, env })).toEqual(end);
});

test('an input of 1 MiB is read, and refused for what it holds', async () => {
  expect((await runHere(['keygen', '--from', whole])).err).toContain('holds no Ed25519 private key');
});
