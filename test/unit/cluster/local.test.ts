import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { sharedKeys } from '../../../cluster/local/shared-keys.ts';
import { compileCache } from '../../support/compile-cache.ts';
import { silentPort } from '../../support/raw-http.ts';
import { suiteDir } from '../../support/running-node.ts';

const dir = suiteDir();
const programs = new Set<ChildProcess>();
afterAll(() => {
  for (const program of programs) program.kill('SIGKILL');
});

interface End {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

interface Program {
  readonly child: ChildProcess;
  readonly ended: Promise<End>;
  said(): string;
}

/** Runs `cluster/<file>` as npm does. Its temporary files are below `dir`. */
function run(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Program {
  const path = fileURLToPath(new URL(`../../../cluster/${file}`, import.meta.url));
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, [path, ...args], { env: { PATH, HOME, TMPDIR: dir, ...compileCache, ...env } });
  programs.add(child);
  let out = '';
  let err = '';
  child.stdout.on('data', (data) => {
    out += String(data);
  });
  child.stderr.on('data', (data) => {
    err += String(data);
  });
  const ended = new Promise<End>((resolve) => {
    child.once('close', (code) => {
      programs.delete(child);
      resolve({ code, out, err });
    });
  });
  return { child, ended, said: () => out + err };
}

const anyPorts = { PORT: '0', GRPC_PORT: '0' };

describe('cluster:local', () => {
  test.each([
    ['an invalid number of nodes', ['--nodes', 'many'], /--nodes.*whole number from 1 to 9/],
    ['two nodes of Cassandra', ['--cassandra', '2'], /--cassandra.*1 or 3/],
    ['an unknown command', ['down'], /too many arguments/],
  ])('refuses %s, and starts nothing', async (_, args, words) => {
    const { code, out, err } = await run('local/main.ts', args, anyPorts).ended;
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(words);
  });

  test('refuses an invalid port with one sentence', async () => {
    expect(await run('local/main.ts', [], { PORT: 'http' }).ended).toEqual({
      code: 1,
      out: '',
      err: 'ledger-trust: Set PORT to a port, a whole number from 0 to 65535; it is "http".\n',
    });
  });

  test('refuses a port in use with one sentence, and leaves no directory behind', async () => {
    const { port } = await silentPort();
    const before = readdirSync(dir);
    expect(await run('local/main.ts', [], { ...anyPorts, PORT: String(port) }).ended).toEqual({
      code: 1,
      out: '',
      err: `ledger-trust: Set PORT and GRPC_PORT to free ports: something else listens on ${port}.\n`,
    });
    expect(readdirSync(dir)).toEqual(before);
  });

  test('says what to install if Redis is not on the PATH', async () => {
    const { code, err } = await run('local/main.ts', [], { ...anyPorts, PATH: dirname(process.execPath) }).ended;
    expect(code).toBe(1);
    expect(err).toBe('ledger-trust: redis-server cannot be started (ENOENT): install it and have it on the PATH.\n');
  });
});

describe('the keys that all nodes share', () => {
  test('are made once, and only this user can read them', async () => {
    const place = join(dir, 'keys');
    const runs = await Promise.all([1, 2].map(() => run('local/main.ts', ['keys', place]).ended));
    expect(runs.map(({ code, err }) => [code, err])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    expect(readdirSync(place).sort()).toEqual(['authority.pem', 'cluster.secret', 'log.pem', 'secrets.key']);
    const files = Object.values(sharedKeys(place));
    const made = files.map((file) => readFileSync(file, 'utf8'));
    for (const file of files) expect(statSync(file).mode & 0o777).toBe(0o600);
    sharedKeys(place);
    expect(files.map((file) => readFileSync(file, 'utf8'))).toEqual(made);
  });
});

describe('the balancer as a program', () => {
  test('serves until SIGTERM, and ends with 0', async () => {
    const { child, ended, said } = run('local/main.ts', ['balance', 'node-1', 'node-2'], anyPorts);
    await vi.waitFor(() => expect(said()).toMatch(/One address for node-1, node-2: REST on port \d+/), 20_000);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, err: '' });
  });
});

describe('start:cluster', () => {
  const least = {
    REDIS_URL: 'redis://127.0.0.1:1',
    CASSANDRA_CONTACT_POINTS: '127.0.0.1:1',
    ...sharedKeys(join(dir, 'keys of a node')),
  };

  test('reports a missing Cassandra in one sentence', async () => {
    const { code, out, err } = await run('main.ts', [], least).ended;
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/^ledger-trust: Cassandra cannot be reached at 127\.0\.0\.1:1: [^\n]+\n$/);
  });

  test('waits for a missing store, until SIGTERM', async () => {
    const { child, ended, said } = run('main.ts', [], { ...least, START_WAIT_MS: '60000' });
    await vi.waitFor(() => expect(said()).toContain('waiting: Cassandra cannot be reached'), 20_000);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, err: '' });
  });

  test('reports a store that does not come in time in one sentence', async () => {
    const { code, err } = await run('main.ts', [], { ...least, START_WAIT_MS: '1500', LOG_LEVEL: 'silent' }).ended;
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/^ledger-trust: Cassandra cannot/) });
  });
});
