import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { newShell } from '../support/shell.ts';

const { run } = newShell();

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
    [],
  ];
  it.each(wrong.map((args) => [args.join(' '), args] as const))('"%s" is a wrong usage', async (_, args) => {
    const { code, err } = await run(args);
    expect(code).toBe(64);
    expect(err).not.toBe('');
  });

  it('export without an API key says where to put one', async () => {
    const { code, err } = await run(['export', '0193a000-0000-7000-8000-000000000001', '--url', 'http://127.0.0.1:1']);
    expect({ code, err }).toEqual({
      code: 1,
      err: 'ledger-trust: An API key is needed: give --api-key-file, or set LEDGER_TRUST_API_KEY.\n',
    });
  });

  it('shows its version and its help', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    expect(await run(['--version'])).toEqual({ code: 0, out: `${version}\n`, err: '' });
    const { code, out } = await run(['--help']);
    expect(code).toBe(0);
    for (const name of ['keygen', 'sign', 'verify', 'export', 'serve', 'backup', 'authority'])
      expect(out).toContain(name);
  });
});
