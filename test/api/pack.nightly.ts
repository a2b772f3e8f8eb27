import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { typedProgram } from '../support/client-package.ts';
import { suiteDir } from '../support/running-node.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const dir = suiteDir();

/** The node of this test comes first, since the package’s commands take the one of the path. */
const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
const inProject = { cwd: dir, env };

const typed = typedProgram('ledger-trust/client', 'await using');
const plain = `import { createClient, LedgerTrustError } from 'ledger-trust/client';
const client = createClient({ baseUrl: 'http://127.0.0.1:1', attemptsMax: 1 });
const error = await client.getHealth().catch((thrown) => thrown);
console.log(error instanceof LedgerTrustError, error.code);
await client.close();
`;

describe('the package', () => {
  beforeAll(async () => {
    // Without the life-cycle scripts, which would make src/gen anew under the feet of other tests.
    await run('npm', ['run', 'build'], { cwd: root, env });
    await run('npm', ['pack', '--ignore-scripts', '--pack-destination', dir], { cwd: root, env });
    writeFileSync(join(dir, 'package.json'), JSON.stringify({ name: 'user', private: true, type: 'module' }));
    const tarball = readdirSync(dir).find((name) => name.endsWith('.tgz'));
    if (tarball === undefined) throw new Error('npm pack left no tarball');
    const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
    await run('npm', ['install', ...quiet, `./${tarball}`], inProject);
  }, 240_000);

  it('contains built files and no sources, tests or data', async () => {
    const installed = readdirSync(join(dir, 'node_modules', 'ledger-trust')).sort();
    expect(installed).toEqual(['LICENSE', 'README.md', 'conformance', 'dist', 'package.json', 'test']);
    const built = readdirSync(join(dir, 'node_modules', 'ledger-trust', 'dist'), { recursive: true }).map(String);
    expect(
      built.filter((name) => /\.[a-z]+$/.test(name) && !/(\.js|\.d\.ts|\.proto|src\/gen\/api\.binpb)$/.test(name)),
    ).toEqual([]);
    expect(built.filter((name) => /^(test|bench|docs|cluster\/local)\b/.test(name))).toEqual([]);
  });

  it('has protos that compile in an empty folder, each with packages for Go and Java', async () => {
    const alone = join(dir, 'alone');
    cpSync(join(dir, 'node_modules', 'ledger-trust', 'dist', 'proto'), alone, { recursive: true });
    const image = join(alone, 'image.json');
    await run(join(root, 'node_modules', '.bin', 'buf'), ['build', '-o', image], { cwd: alone, env });
    const { file } = JSON.parse(readFileSync(image, 'utf8')) as {
      file: { name: string; options?: { goPackage?: string; javaPackage?: string } }[];
    };
    const own = file.filter(({ name }) => name.startsWith('svc/v1/'));
    expect(own.length).toBeGreaterThan(10);
    // No module proxy answers for a path without a dot: nobody else can publish code under it.
    expect(new Set(own.map(({ options }) => options?.goPackage))).toEqual(new Set(['ledger-trust/svc/v1;svcv1']));
    for (const { name, options } of file)
      expect([name, options?.goPackage, options?.javaPackage]).toEqual([name, expect.any(String), expect.any(String)]);
  });

  it('contains the full text of the licence that it names', () => {
    const place = join(dir, 'node_modules', 'ledger-trust');
    const { license } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as { license: string };
    const text = readFileSync(join(place, 'LICENSE'));
    expect(license).toBe('Apache-2.0');
    // The text as the Apache Software Foundation publishes it.
    const published = 'cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30';
    expect(createHash('sha256').update(text).digest('hex')).toBe(published);
  });

  it.each(['nodenext', 'bundler'])('compiles in a project with %s resolution', async (moduleResolution) => {
    writeFileSync(join(dir, 'use.ts'), typed);
    const compilerOptions = {
      target: 'es2024',
      lib: ['es2024', 'esnext.disposable'],
      module: moduleResolution === 'nodenext' ? 'nodenext' : 'esnext',
      moduleResolution,
      strict: true,
      noEmit: true,
      types: ['node'],
      typeRoots: [join(root, 'node_modules', '@types')],
    };
    writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }));
    const tsc = join(root, 'node_modules', '.bin', 'tsc');
    await expect(run(tsc, ['-p', dir], inProject)).resolves.toMatchObject({ stdout: '' });
  });

  it('runs as plain JavaScript', async () => {
    writeFileSync(join(dir, 'use.mjs'), plain);
    const { stdout } = await run(process.execPath, ['use.mjs'], inProject);
    expect(stdout).toBe('true connection_lost\n');
  });

  it('loads its client by require', async () => {
    const text = "console.log(typeof require('ledger-trust/client').createClient)";
    const { stdout, stderr } = await run(process.execPath, ['--input-type=commonjs', '-e', text], inProject);
    expect([stdout, stderr]).toEqual(['function\n', '']);
  });

  it.each(['dist/src/main.js', 'dist/cluster/main.js', 'dist/cluster/cli.js'])(
    'says in one sentence that a Node is too old: %s',
    async (file) => {
      const old = "data:text/javascript,Object.defineProperty(process, 'version', { value: 'v20.20.2' })";
      const main = join(dir, 'node_modules', 'ledger-trust', file);
      const failed = await run(process.execPath, ['--import', old, main, '--help'], inProject).catch((error) => error);
      expect(failed).toMatchObject({
        code: 1,
        stderr: 'ledger-trust: Node 24 or later is needed, and this is Node 20.20.2.\n',
      });
    },
  );

  it('installs the command ledger-trust', async () => {
    const command = join(dir, 'node_modules', '.bin', 'ledger-trust');
    const { stdout } = await run(command, ['keygen', '--out', 'key.pem'], inProject);
    expect(stdout).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
    expect(statSync(join(dir, 'key.pem')).mode & 0o777).toBe(0o600);
  });

  it('is built before it is packed', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    expect(scripts.prepack).toBe('npm run build');
  });

  it('runs a node by ledger-trust serve', async () => {
    const command = join(dir, 'node_modules', '.bin', 'ledger-trust');
    const ports = { HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', OPS_PORT: '0', DATA_DIR: join(dir, 'data') };
    const node = spawn(command, ['serve'], { cwd: dir, env: { PATH: env.PATH, HOME: dir, ...ports } });
    onTestFinished(() => void node.kill('SIGKILL'));
    let said = '';
    for (const stream of [node.stdout, node.stderr])
      stream.on('data', (data: Buffer) => {
        said += data.toString();
      });
    const addresses = /REST +(http:\S+)\/v1.*gRPC +(\S+)/s;
    await expect.poll(() => said, { timeout: 30_000 }).toMatch(addresses);
    const [, base = '', grpc = ''] = addresses.exec(said) ?? [];
    expect(await (await fetch(`${base}/openapi.json`)).json()).toMatchObject({ openapi: '3.1.0' });
    // Signed calls, over gRPC too, and the threads that verify and that speak gRPC.
    expect((await (await fetch(`${base}/v1/sandbox/run`)).text()).trimEnd()).toMatch(/ passed, 0 failed$/);
    await using client = createClient({ grpcUrl: `http://${grpc}`, transport: 'grpc' });
    expect(await client.getHealth()).toMatchObject({ status: 'ok' });
    const ended = once(node, 'exit');
    node.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });

  it('installs the commands of a cluster and its node', async () => {
    const command = join(dir, 'node_modules', '.bin', 'ledger-trust');
    const bare = { PATH: env.PATH, HOME: dir };
    const refused = (file: string, ...args: string[]) =>
      run(file, args, { cwd: dir, env: bare }).then(
        () => null,
        ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
      );
    expect(await refused(command, 'cluster', 'status')).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^ledger-trust: Set REDIS_URL to .*\n$/),
    });
    for (const args of [
      ['schema', 'apply'],
      ['cluster', 'verify', '--all'],
    ])
      expect(await refused(command, ...args)).toMatchObject({
        stderr: expect.stringMatching(/^ledger-trust: .*CASSANDRA_CONTACT_POINTS.*\n$/),
      });
    const main = join(dir, 'node_modules', 'ledger-trust', 'dist', 'cluster', 'main.js');
    expect(await refused(process.execPath, main)).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^ledger-trust: Set AUTHORITY_KEY_FILE: .*\n$/),
    });
    const { stdout } = await run(command, ['--version'], inProject);
    expect(stdout).toBe(`${JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version}\n`);
  });

  it('exports no internal module', async () => {
    const inside = "import('ledger-trust/dist/src/client/index.js').catch((error) => console.log(error.code))";
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', inside], inProject);
    expect(stdout).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED\n');
  });
});
