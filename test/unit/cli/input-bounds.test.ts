import { chmodSync, mkdirSync, truncateSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { exitCodes } from '../../../src/cli/terminal/exit-codes.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';

const { dir, file } = newShell();
const mebibyte = 1024 * 1024;

/** A file of so many zero bytes, which takes no space. */
function zeros(name: string, bytes: number): string {
  const path = file(name, '');
  truncateSync(path, bytes);
  return path;
}

const [whole, over] = [zeros('whole', mebibyte), zeros('over', mebibyte + 1)];
const answer = zeros('answer', 64 * mebibyte + 1);
const profile = join(dir, 'ledger-trust', 'large.json');
mkdirSync(dirname(profile));
zeros('ledger-trust/large.json', mebibyte + 1);
chmodSync(profile, 0o600);
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
  ['a profile', ['whoami', '--profile', 'large'], `${profile} ${small}`],
  ['a saved answer', ['verify', answer], `${answer} ${exports}`],
  ['a file of resolver documents', ['verify', file('none.json', []), '--keys', answer], `${answer} ${exports}`],
  [
    'a file of watermarks',
    ['checkpoint', '0198c0de-0000-7000-8000-000000000001', '--state', answer],
    `${answer} cannot be read: it holds no watermarks (TypeError: it is larger than 64 MiB).`,
  ],
])('%s that is too large ends a command with 66 and says what to do', async (_, args, sentence) => {
  const input = Buffer.alloc(mebibyte + 1);
  const env = { XDG_CONFIG_HOME: dir, LEDGER_TRUST_API_KEY: 'x', LEDGER_TRUST_URL: 'http://127.0.0.1:1' };
  const end = { code: exitCodes.input, out: '', err: `ledger-trust: ${sentence}\n` };
  expect(await runHere(args, { input, env })).toEqual(end);
});

test('an export of more than 64 MiB on stdin ends verify with 66, and one of 64 MiB is read', async () => {
  const input = Buffer.alloc(64 * mebibyte + 1);
  const err = `ledger-trust: stdin ${exports}\n`;
  expect(await runHere(['verify', '-'], { input })).toEqual({ code: exitCodes.input, out: '', err });
  const read = await runHere(['verify', '-'], { input: input.subarray(1) });
  expect(read).toMatchObject({ code: exitCodes.input, err: expect.stringContaining('stdin holds no ') });
});

test('an input of 1 MiB is read, and refused for what it holds', async () => {
  expect((await runHere(['keygen', '--from', whole])).err).toContain('holds no Ed25519 private key');
});
