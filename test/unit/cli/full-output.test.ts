import { spawnSync } from 'node:child_process';
import { closeSync, openSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exitCodes } from '../../../src/cli/terminal/exit-codes.ts';
import { against, answer } from '../../support/answering-service.ts';
import { events, exported } from '../../support/export-of-vectors.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';

const { dir, file } = newShell();
const program = join(import.meta.dirname, '../../../cluster/cli.ts');

/** A run of the program whose stdout or stderr is a full disk. */
function runFull(full: 'stdout' | 'stderr', ...args: readonly string[]) {
  const device = openSync('/dev/full', 'w');
  try {
    const [stdout, stderr] = full === 'stdout' ? ([device, 'pipe'] as const) : (['pipe', device] as const);
    return spawnSync(process.execPath, [program, ...args], { stdio: ['ignore', stdout, stderr], encoding: 'utf8' });
  } finally {
    closeSync(device);
  }
}

const valid = file('valid.jsonl', exported(events, { kind: 'ledger' }));

test.each([
  ['a command', ['--version']],
  ['verify of a valid export', ['verify', valid, '--trust-file-keys']],
  ['verify of a valid export with --json', ['verify', valid, '--trust-file-keys', '--json']],
])('%s whose output cannot be written ends with a sentence and 74, never with what means invalid', (_, args) => {
  const { status, stderr } = runFull('stdout', ...args);
  expect([status, stderr]).toEqual([exitCodes.writeFailed, 'The output cannot be written: the disk is full.\n']);
});

test.each([
  ['a private key', ['keygen', '--out', '/proc/none']],
  ['the secret of a webhook', ['webhooks', 'create', 'https://a.example', '--secret-out', '/proc/none']],
  ['a profile', ['register', '--name', 'a', '--email', 'a@a.example']],
])('a command that cannot write %s to a file ends with 74', async (_, args) => {
  const env = { XDG_CONFIG_HOME: '/sys/kernel', LEDGER_TRUST_API_KEY: 'x', LEDGER_TRUST_URL: 'http://127.0.0.1:1' };
  const { code, err } = await runHere(args, { env });
  expect(err).toMatch(/^ledger-trust: \/\S+ cannot be (written|made): .+\.\n$/);
  expect(code).toBe(exitCodes.writeFailed);
});

test('register calls nobody if the profiles cannot be written, since the API keys would be lost', async () => {
  // As root too, nobody can make a file there.
  symlinkSync('/proc/self', join(dir, 'ledger-trust'));
  const args = ['register', '--name', 'a', '--email', 'a@a.example', '--no-signing'];
  const { baseUrl, seen } = await against((_, response) => answer(response, 503, {}));
  const { code, err } = await runHere(args, { env: { XDG_CONFIG_HOME: dir, LEDGER_TRUST_URL: baseUrl } });
  expect(err).toMatch(/^ledger-trust: \S+\.json cannot be written: .+\.\n$/);
  expect({ code, seen }).toEqual({ code: exitCodes.writeFailed, seen: [] });
});

test('a command whose errors cannot be written keeps its exit code', () => {
  expect(runFull('stderr', 'verify', '/no/such/file').status).toBe(exitCodes.input);
});
