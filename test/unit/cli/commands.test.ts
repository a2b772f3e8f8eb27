import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';

const { run, file } = newShell();
const ledgerId = '0193a000-0000-7000-8000-000000000001';
const eventsFile = file('events.json', []);
const emptyFile = file('empty', '\n');

describe('the command line', () => {
  const wrong = [
    ['verify'],
    ['verify', 'x', '--kind', 'other'],
    ['nonsense'],
    ['keygen', '--nonsense'],
    ['verify', 'x', '--resolver', 'http://127.0.0.1:1', '--keys', 'x'],
    ['sign'],
    ['keygen', '--out', 'x', '--from', 'x'],
    ['export', 'x'],
    ['export', '--url', 'http://127.0.0.1:1'],
    ['export', ledgerId, '--master', ledgerId, '--url', 'http://127.0.0.1:1'],
    ['export', ledgerId, '--json', '--url', 'http://127.0.0.1:1'],
    [],
  ];
  it.each(wrong.map((args) => [args.join(' '), args] as const))('exits with 64 for "%s"', async (_, args) => {
    const { code, err } = await runHere(args);
    expect(code).toBe(64);
    expect(err).not.toBe('');
  });

  it.each([
    [
      ['export', 'notauuid', '--url', 'http://127.0.0.1:1'],
      'The id of a ledger must be a UUID in lower case: "notauuid" is none.',
    ],
    [
      ['export', '--master', 'x', '--url', 'http://127.0.0.1:1'],
      'The id of a master must be a UUID in lower case: "x" is none.',
    ],
    [['export', ledgerId, '--url', 'nonsense'], 'Option --url must be a base URL such as https://ledger.example.'],
    [['export', ledgerId, '--url', 'file:///x'], 'Option --url must be a base URL such as https://ledger.example.'],
    [
      ['export', ledgerId, '--url', 'https://:secret@ledger.example'],
      'Option --url must be a base URL such as https://ledger.example.',
    ],
    [
      ['verify', eventsFile, '--resolver', 'nonsense'],
      'Option --resolver must be a base URL such as https://ledger.example.',
    ],
    ...['zz', 'AB'.repeat(32), 'ab'.repeat(31), `${'ab'.repeat(32)}\n`].map((head): [string[], string] => [
      ['verify', eventsFile, '--head', 'ab'.repeat(32), head],
      `Option --head takes hashes, each of 64 hex digits in lower case: ${JSON.stringify(head)} is none.`,
    ]),
  ])('refuses %j with a sentence', async (args, sentence) => {
    expect(await runHere(args)).toEqual({ code: 64, out: '', err: `ledger-trust: ${sentence}\n` });
  });

  it.each([
    ['that is not there', '/no/key', '/no/key cannot be read: it is not there.'],
    ['that is empty', emptyFile, `${emptyFile} holds no API key.`],
  ])('names an API key file %s', async (_, path, sentence) => {
    const args = ['export', ledgerId, '--url', 'http://127.0.0.1:1', '--api-key-file', path];
    expect(await runHere(args)).toEqual({ code: 66, out: '', err: `ledger-trust: ${sentence}\n` });
  });

  it('names the places for an API key when an export has none', async () => {
    const { code, err } = await runHere(['export', ledgerId, '--url', 'http://127.0.0.1:1']);
    expect({ code, err }).toEqual({
      code: 1,
      err: 'ledger-trust: An API key is needed: run ledger-trust register or login, or set LEDGER_TRUST_API_KEY.\n',
    });
  });

  it('shows its version, its help and unknown commands', async () => {
    expect(await runHere(['nonsense'])).toEqual({ code: 64, out: '', err: "error: unknown command 'nonsense'\n" });
    const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    expect(await run(['--version'])).toEqual({ code: 0, out: `${version}\n`, err: '' });
    const { code, out } = await runHere(['--help']);
    expect(code).toBe(0);
    for (const name of ['keygen', 'sign', 'verify', 'export', 'serve', 'backup', 'authority'])
      expect(out).toContain(name);
    expect(out).toMatch(/ 66 +a file that the command reads is not there/);
  });

  it('takes --json on every command, but for those that run on the machine of a node', async () => {
    const onNodes = ['serve', 'backup', 'scrub', 'authority', 'log', 'schema', 'copy', 'help'];
    const namesIn = (help: string): string[] =>
      Array.from(help.split('Commands:')[1]?.matchAll(/^ {2}([a-z][a-z-]*)/gm) ?? [], ([, name = '']) => name);
    const without: string[] = [];
    const look = async (command: readonly string[]): Promise<number> => {
      const { out } = await runHere([...command, '--help']);
      const below = namesIn(out).filter((name) => !onNodes.includes(name));
      if (below.length === 0 && !out.includes('--json')) without.push(command.join(' '));
      let count = 1;
      for (const name of below) count += await look([...command, name]);
      return count;
    };
    expect(await look([])).toBeGreaterThan(35);
    expect(without).toEqual([]);
  });
});
