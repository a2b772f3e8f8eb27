import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startNodeProcess } from '../support/node-process.ts';

/**
 * `npm run test:schemathesis [OPTION ...]`: Schemathesis, with all its checks, asks a live node whether it does what
 * its document says. schemathesis.toml lists the differences that docs/api.md names. Schemathesis is installed into
 * GENERATORS_CACHE.
 */

const VERSION = '4.32.5';
const cache = resolve(process.env.GENERATORS_CACHE ?? join(tmpdir(), 'ledger-trust-generators'));
const tools = join(cache, 'schemathesis');

function run(program: string, ...args: string[]): Promise<number> {
  return new Promise((done, failed) => {
    const child = spawn(program, args, { cwd: cache, stdio: ['ignore', 'inherit', 'inherit'] });
    child.once('error', failed);
    child.once('close', (code) => done(code ?? 1));
  });
}

async function install(): Promise<void> {
  await mkdir(cache, { recursive: true });
  const made = existsSync(join(tools, 'bin/pip')) ? 0 : await run('python3', '-m', 'venv', tools);
  const installed = await run(join(tools, 'bin/pip'), 'install', '-q', `schemathesis==${VERSION}`);
  if (made !== 0 || installed !== 0) throw new Error('Schemathesis could not be installed');
}

async function apiKey(base: string): Promise<string> {
  const developer = { name: 'Schemathesis', email: 'office@acme.example', region: 'eu' };
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${base}/v1/developer/register`, {
    method: 'POST',
    headers,
    body: JSON.stringify(developer),
  });
  const { sandbox } = (await answer.json()) as { sandbox: { api_key: string } };
  return sandbox.api_key;
}

await install();
const data = await mkdtemp(join(tmpdir(), 'schemathesis-'));
try {
  await using service = await startNodeProcess({ DATA_DIR: data });
  process.exitCode = await run(
    join(tools, 'bin/schemathesis'),
    '--config-file',
    join(import.meta.dirname, 'schemathesis.toml'),
    'run',
    `${service.base}/openapi.json`,
    '--header',
    `Authorization: Bearer ${await apiKey(service.base)}`,
    '--checks',
    'all',
    '--max-examples',
    '20',
    '--continue-on-failure',
    ...process.argv.slice(2),
  );
} finally {
  await rm(data, { recursive: true, force: true });
}
