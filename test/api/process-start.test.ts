import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { readConfig } from '../../src/node/config.ts';
import { startEmbedded } from '../../src/node/embedded.ts';
import { readTls } from '../../src/node/listeners.ts';
import type { RunningNode } from '../../src/node/node-parts.ts';
import { createLog } from '../../src/runtime/telemetry/log.ts';
import { watchHost } from '../support/host-watch.ts';
import { type ProcessEnvironment, runToEnd, startNodeProcess } from '../support/node-process.ts';
import { refused } from '../support/refused-start.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

// Processes start slowly on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

const root = suiteDir();

const file = (name: string, text: string | Buffer): string => {
  const path = join(root, name);
  writeFileSync(path, text);
  return path;
};
const pem = (type: 'ed25519' | 'x25519'): string => {
  const { privateKey } = type === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('x25519');
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
};
const authorityFile = file('authority.pem', pem('ed25519'));
const secretsFile = file('secrets.key', randomBytes(32).toString('base64'));

let dirs = 0;
const freshDir = (): string => {
  dirs += 1;
  return join(root, `data-${dirs}`);
};

/** One sentence on stderr, exit code 1, and at once. */
async function refuses(env: ProcessEnvironment, ...words: string[]): Promise<void> {
  const [host, begun] = [watchHost(), performance.now()];
  const end = await runToEnd({ DATA_DIR: freshDir(), ...env });
  expect(end).toMatchObject({ code: 1, stdout: '' });
  expect(end.stderr).toMatch(/^ledger-trust: [^\n]+\n$/);
  for (const word of words) expect(end.stderr).toContain(word);
  expect(performance.now() - begun).toBeLessThan(host.bound(8_000));
}

/** The same of a node in this process, for what a start checks: how a process says it is shown by the others. */
async function refusesHere(env: ProcessEnvironment, ...words: string[]): Promise<void> {
  const anyPorts = { HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', OPS_PORT: '0' };
  const start = async (): Promise<RunningNode> => {
    const config = readConfig({ ...anyPorts, DATA_DIR: freshDir(), ...env });
    readTls(config, Date.now());
    return startEmbedded(config, createLog('silent', { write: () => {} }), () => {});
  };
  const began = performance.now();
  const error = await start().then(
    async (node) => {
      await node.stop();
      throw new Error('the node has started');
    },
    (refusal: unknown) => refusal,
  );
  const { said, code } = refused(error);
  expect(code).toBe(1);
  expect(said).toMatch(/^ledger-trust: [^\n]+\n$/);
  for (const word of words) expect(said).toContain(word);
  expect(performance.now() - began).toBeLessThan(8_000);
}

/** Starts a node on the directory, in this process, and stops it once it has answered. */
async function servedOnce(dataDir: string): Promise<void> {
  await using node = await runNode({ dataDir });
  expect((await fetch(`${node.base}/health`)).status).toBe(200);
}

test('a node does not start with a variable that is no number', () => refuses({ PORT: 'many' }, 'PORT', 'many'));

test.each<[string, ProcessEnvironment, ...string[]]>([
  ['a data directory that is a file', { DATA_DIR: authorityFile }, authorityFile],
  [
    'production mode and nothing else',
    { SVC_MODE: 'production' },
    'AUTHORITY_KEY_FILE',
    'SECRETS_KEY_FILE',
    'LOG_ORIGIN',
    'LOG_KEY_FILE',
    'TLS_TERMINATED',
  ],
  ['an authority key of another kind', { AUTHORITY_KEY_FILE: file('x.pem', pem('x25519')) }, 'AUTHORITY_KEY_FILE'],
  ['a data directory that cannot be made', { DATA_DIR: '/sys/kernel/data' }, '/sys/kernel/data'],
  [
    'the key of the authority as the log key',
    { AUTHORITY_KEY_FILE: authorityFile, LOG_KEY_FILE: authorityFile },
    'Set LOG_KEY_FILE to another key',
  ],
  // Node's own recursive mkdir never returns from here.
  ['a data directory where none can ever be', { DATA_DIR: '/proc/none/data' }, '/proc/none/data'],
  ['an address that is not this machine’s', { HOST: '203.0.113.7' }, 'HOST', '203.0.113.7'],
  ['an internal address that is none', { OPS_HOST: '999.1.1.1' }, 'OPS_HOST', '999.1.1.1'],
])('a node does not start with %s', (_name, env, ...words) => refusesHere(env, ...words));

test.each([
  ['PORT', refuses],
  ['GRPC_PORT', refusesHere],
  ['OPS_PORT', refusesHere],
] as const)('a node does not start when %s is taken', async (variable, isRefused) => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? String(address.port) : '';
  onTestFinished(() => void server.close());
  await isRefused({ [variable]: port }, variable, port);
});

test('a second node on the same directory is refused and leaves the first one running', async () => {
  const DATA_DIR = freshDir();
  await using node = await startNodeProcess({ DATA_DIR });
  expect(node.said()).toContain('development');
  await refuses({ DATA_DIR }, DATA_DIR);
  expect((await fetch(`${node.base}/health`)).status).toBe(200);
});

test('a missing key stops the start, and no new one is made', async () => {
  const DATA_DIR = freshDir();
  await servedOnce(DATA_DIR);
  // Each holder of the directory has a socket of its own.
  const files = () => readdirSync(DATA_DIR).filter((file) => !file.endsWith('.sock'));
  for (const name of ['authority.pem', 'secrets.key', 'log.pem']) {
    const path = join(DATA_DIR, name);
    const kept = readFileSync(path);
    rmSync(path);
    const before = files();
    await refusesHere({ DATA_DIR }, `${path} is missing`, 'restore it from the backup');
    expect(files()).toEqual(before);
    writeFileSync(path, kept, { mode: 0o600 });
  }
  await servedOnce(DATA_DIR);
});

test('a directory of another format or of other keys is refused', async () => {
  const DATA_DIR = freshDir();
  await servedOnce(DATA_DIR);
  await refusesHere({ DATA_DIR, AUTHORITY_KEY_FILE: authorityFile }, 'authority');
  await refusesHere({ DATA_DIR, SECRETS_KEY_FILE: secretsFile }, 'SECRETS_KEY_FILE');
  await refusesHere({ DATA_DIR, LOG_KEY_FILE: authorityFile }, 'LOG_KEY_FILE', 'log rotate');
  await refusesHere({ DATA_DIR, LOG_ORIGIN: 'ledger.example/v1' }, 'LOG_ORIGIN', 'log new-origin');
  await servedOnce(DATA_DIR);

  for (const text of ['ledger-trust data, format 99\n', 'no format at all']) {
    writeFileSync(join(DATA_DIR, 'FORMAT'), text);
    await refusesHere({ DATA_DIR }, DATA_DIR, text.includes('99') ? 'format 99' : 'an unknown format');
    expect(readFileSync(join(DATA_DIR, 'FORMAT'), 'utf8')).toBe(text);
  }

  const odd = freshDir();
  mkdirSync(odd);
  writeFileSync(join(odd, 'data.mdb'), 'not a database'.repeat(1000));
  await refusesHere({ DATA_DIR: odd }, odd);
});

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));

test.runIf(hasIpv6)('the announced addresses of a node on IPv6 can be called', async () => {
  await using node = await startNodeProcess({ DATA_DIR: freshDir(), HOST: '::1', OPS_HOST: '::1' });
  expect(node.base).toContain('[::1]');
  expect((await fetch(`${node.base}/v1/health`)).status).toBe(200);
  expect((await fetch(`${node.opsBase}/metrics`)).status).toBe(200);
  expect(await (await fetch(`${node.base}/v1/sandbox/run`)).text()).toMatch(/ passed, 0 failed\n$/);
});

test('the keys that a node makes are readable by its user only', async () => {
  const DATA_DIR = freshDir();
  await servedOnce(DATA_DIR);
  const modes = execFileSync('stat', [
    '-c',
    '%a %n',
    ...readdirSync(DATA_DIR).map((name) => join(DATA_DIR, name)),
  ]).toString();
  const keys = modes.split('\n').filter((line) => /\.(pem|key)$|-key$/.test(line));
  expect(keys).toHaveLength(3);
  for (const line of keys) expect(line).toMatch(/^600 /);
});
