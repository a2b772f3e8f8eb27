import { execFile, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { webhookSecret } from '../../src/domain/keys/webhook-signature.ts';
import { exampleOf, installClient, typedProgram } from '../support/client-package.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const dir = suiteDir();
const inProject = { cwd: dir, env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` } };
const installed = join(dir, 'node_modules', 'ledger-trust-client');

const typed = typedProgram('ledger-trust-client', 'const');
/** What only Node has, with the types of Node. */
const typedForNode = `import { generateKeyPairSync } from 'node:crypto';
import { createClient, signerFromPrivateKey } from 'ledger-trust-client';
import { Agent } from 'undici';

export const signer = signerFromPrivateKey(generateKeyPairSync('ed25519').privateKey);
export const client = createClient({ baseUrl: 'http://a', grpcUrl: 'http://a', dispatcher: new Agent(), signer });
`;
/** What the README of the service shows of the client. */
const shown = /<!-- client -->\n```ts\n(.*?)```/s.exec(readFileSync(join(root, 'README.md'), 'utf8'))?.[1] ?? '';
const compilers = [
  { module: 'nodenext', moduleResolution: 'nodenext', file: 'use.ts', text: typed, lib: ['es2022', 'dom'], types: [] },
  { module: 'nodenext', moduleResolution: 'nodenext', file: 'use.cts', text: typed, lib: ['es2022'], types: ['node'] },
  { module: 'esnext', moduleResolution: 'bundler', file: 'use.ts', text: typed, lib: ['es2022', 'dom'], types: [] },
  {
    module: 'nodenext',
    moduleResolution: 'nodenext',
    file: 'node.ts',
    text: typedForNode,
    lib: ['es2024'],
    types: ['node'],
  },
  {
    module: 'nodenext',
    moduleResolution: 'nodenext',
    file: 'shown.mts',
    text: shown,
    lib: ['es2024', 'esnext.disposable'],
    types: ['node'],
  },
];

describe('the package ledger-trust-client', () => {
  beforeAll(() => installClient(dir), 240_000);

  it('has at most five dependencies, and none of the server', () => {
    const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    expect(Object.keys(dependencies)).toEqual([
      '@bufbuild/protobuf',
      '@grpc/grpc-js',
      '@noble/curves',
      '@noble/hashes',
      'undici',
    ]);
    const all = readdirSync(join(dir, 'node_modules'));
    for (const server of ['lmdb', 'ioredis', 'cassandra-driver', 'sodium-native', 'pino', '@connectrpc'])
      expect(all).not.toContain(server);
  });

  it('has less than 3 MB unpacked', () => {
    const sizes = readdirSync(installed, { recursive: true }).map((name) => lstatSync(join(installed, String(name))));
    const bytes = sizes.reduce((sum, entry) => sum + (entry.isFile() ? entry.size : 0), 0);
    expect(bytes).toBeGreaterThan(100_000);
    expect(bytes).toBeLessThan(3_000_000);
  });

  it('contains built files, the licence and the README', () => {
    expect(readdirSync(installed).sort()).toEqual(['LICENSE', 'README.md', 'lib', 'package.json']);
    const built = readdirSync(join(installed, 'lib'), { recursive: true }).map(String);
    expect(built.filter((name) => /\.\w+$/.test(name) && !/(\.js|\.d\.ts)$/.test(name))).toEqual([]);
  });

  it.each(compilers)('compiles $file with $moduleResolution, strict, libraries checked', async (compiler) => {
    const { module, moduleResolution, file, text, lib, types } = compiler;
    const folder = join(dir, `compile-${file.replace('.', '-')}-${moduleResolution}`);
    mkdirSync(folder);
    writeFileSync(join(folder, file), text);
    const typeRoots = [join(root, 'node_modules', '@types')];
    const options = { module, moduleResolution, lib, types, typeRoots, target: 'es2022', strict: true, noEmit: true };
    const compilerOptions = { ...options, skipLibCheck: false };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }));
    const tsc = join(root, 'node_modules', '.bin', 'tsc');
    const said = await run(tsc, ['-p', folder], inProject).catch(({ stdout }: { stdout: string }) => ({ stdout }));
    expect(said.stdout).toBe('');
  });

  it.each([
    ['import', 'use.mjs', "import * as client from 'ledger-trust-client';"],
    ['require', 'use.cjs', "const client = require('ledger-trust-client');"],
  ])('loads by %s, without grpc-js until the first call over gRPC', async (_, file, load) => {
    const text = `${load}
const { createRequire } = process.getBuiltinModule('node:module');
const loaded = () => Object.keys(createRequire(process.cwd() + '/').cache).some((name) => name.includes('grpc-js'));
const call = (options) => client.createClient({ ...options, attemptsMax: 1 }).getHealth().catch(({ code }) => code);
call({ baseUrl: 'http://127.0.0.1:1' }).then(async (rest) => {
  const before = loaded();
  const grpc = await call({ grpcUrl: 'http://127.0.0.1:1', transport: 'grpc' });
  console.log(rest, before, grpc, loaded());
  process.exit();
});
`;
    writeFileSync(join(dir, file), text);
    const { stdout, stderr } = await run(process.execPath, [file], inProject);
    expect([stdout, stderr]).toEqual(['connection_lost false connection_lost true\n', '']);
  });

  it('runs the first example of its README', async () => {
    await using node = await runNode();
    writeFileSync(join(dir, 'append.mjs'), exampleOf('append', node.base));
    const { stdout } = await run(process.execPath, ['append.mjs'], inProject);
    expect(stdout).toBe('4 events, 2 signatures: valid\n');
  });

  it('runs the example of the README of the service', async () => {
    await using node = await runNode();
    writeFileSync(join(dir, 'shown.mts'), shown);
    const env = { ...inProject.env, BASE: node.base };
    const { stdout } = await run(process.execPath, ['shown.mts'], { ...inProject, env });
    expect(stdout).toBe('4 valid\n');
  });

  it('runs the webhook example of its README', async () => {
    const secret = webhookSecret(new Uint8Array(32).fill(7));
    writeFileSync(
      join(dir, 'webhook.cjs'),
      exampleOf('webhook', '').replace('process.env.PORT ?? 3000', '0, () => console.log(server.address().port)'),
    );
    const server = spawn(process.execPath, ['webhook.cjs'], {
      ...inProject,
      env: { ...inProject.env, WEBHOOK_SECRET: secret },
    });
    onTestFinished(() => void server.kill('SIGKILL'));
    let said = '';
    server.stdout.on('data', (data: Buffer) => {
      said += data.toString();
    });
    await expect.poll(() => said, { timeout: 20_000 }).toMatch(/^\d+\n/);
    const url = `http://127.0.0.1:${Number.parseInt(said, 10)}/`;
    const id = '01a1fdf3-0f6a-7216-a587-bf138f3791a3';
    const time = Math.floor(Date.now() / 1_000);
    const body =
      `{"api_version":"2026-04-14","event":{"id":"${id}","ledger_id":null,"event_type":"PING","payload":{},` +
      '"actor_id":null,"created_at":"2026-11-21T02:06:39.123Z","seq":null,"master_id":null,"hash":null},' +
      '"created_at":"2026-11-21T02:06:39.123Z"}';
    const key = Buffer.from(secret.slice(6), 'base64');
    const headers = {
      'x-svc-signature': `sha256=${createHmac('sha256', secret).update(`svc-webhook-v1:${body}`).digest('hex')}`,
      'webhook-id': id,
      'webhook-timestamp': String(time),
      'webhook-signature': `v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`,
    };
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(204);
    expect((await fetch(url, { method: 'POST', headers, body: `${body} ` })).status).toBe(400);
    expect(said).toMatch(/^\d+\nPING\n$/);
  });
});
