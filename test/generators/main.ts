import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startNodeProcess } from '../support/node-process.ts';

/**
 * `npm run test:generators [NAME ...]`: each client generator makes a client of the served OpenAPI document as it is,
 * the client is compiled, and a program (calls/) calls a live node through it. Tools are installed into
 * GENERATORS_CACHE.
 */

const cache = resolve(process.env.GENERATORS_CACHE ?? join(tmpdir(), 'ledger-trust-generators'));
const calls = join(import.meta.dirname, 'calls');

const versions = {
  'openapi-generator-cli': '7.25.0',
  'openapi-python-client': '0.29.1',
  'openapi-typescript': '7.13.0',
  'openapi-fetch': '0.17.0',
  typescript: '5.9.3',
  'oapi-codegen': 'v2.8.2',
};

const jar = join(cache, `openapi-generator-cli-${versions['openapi-generator-cli']}.jar`);
const python = join(cache, 'python/bin/python');
const node = process.execPath;
const tsc = join(cache, 'npm/node_modules/typescript/bin/tsc');
const compileTypes = [
  tsc,
  '--strict',
  '--skipLibCheck',
  '--target',
  'es2022',
  '--module',
  'nodenext',
  '--types',
  'node',
];

interface Place {
  /** The saved document. */
  readonly document: string;
  /** An empty folder of the generator's own. */
  readonly folder: string;
}

type Command = readonly [program: string, ...args: string[]];
type Run = (command: Command, cwd: string, env?: NodeJS.ProcessEnv) => Promise<void>;

type Installer = (run: Run) => Promise<void>;

interface Generator {
  readonly name: string;
  readonly tools: readonly Installer[];
  /** Makes the client, compiles it, and calls the node. */
  generate(run: Run, place: Place): Promise<void>;
}

const installJar = (run: Run) =>
  run(
    [
      'mvn',
      '-q',
      'dependency:copy',
      `-Dartifact=org.openapitools:openapi-generator-cli:${versions['openapi-generator-cli']}`,
      `-DoutputDirectory=${cache}`,
    ],
    cache,
  );

async function installPython(run: Run): Promise<void> {
  if (!existsSync(python)) await run(['python3', '-m', 'venv', join(cache, 'python')], cache);
  const client = `openapi-python-client==${versions['openapi-python-client']}`;
  await run([python, '-m', 'pip', 'install', '-q', client, 'urllib3', 'python-dateutil', 'pydantic'], cache);
}

async function installNpm(run: Run): Promise<void> {
  const names = ['openapi-typescript', 'openapi-fetch', 'typescript'] as const;
  const packages = names.map((name) => `${name}@${versions[name]}`);
  await mkdir(join(cache, 'npm'), { recursive: true });
  await writeFile(join(cache, 'npm/package.json'), '{"private": true, "type": "module"}');
  await run(
    ['npm', 'install', '--silent', '--no-fund', '--no-audit', '@types/node@24', ...packages],
    join(cache, 'npm'),
  );
}

const installOapiCodegen: Installer = (run) => {
  const tool = `github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@${versions['oapi-codegen']}`;
  return run(['go', 'install', tool], cache, { GOBIN: cache });
};

const openApiGenerator = (language: string, { document, folder }: Place, ...options: string[]): Command => [
  'java',
  '-jar',
  jar,
  'generate',
  '-i',
  document,
  '-g',
  language,
  '-o',
  join(folder, 'client'),
  ...options,
];

const generators: readonly Generator[] = [
  {
    name: 'openapi-generator: python',
    tools: [installJar, installPython],
    async generate(run, place) {
      await run(openApiGenerator('python', place), place.folder);
      await run([python, '-m', 'compileall', '-q', 'client/openapi_client'], place.folder);
      const env = { PYTHONPATH: join(place.folder, 'client') };
      await run([python, join(calls, 'openapi-generator.py')], place.folder, env);
    },
  },
  {
    name: 'openapi-generator: typescript-fetch',
    tools: [installJar, installNpm],
    async generate(run, place) {
      await run(openApiGenerator('typescript-fetch', place, '--additional-properties=importFileExtension=.js'), cache);
      await runTypeScript(run, place, 'typescript-fetch.ts');
    },
  },
  {
    name: 'openapi-generator: go',
    tools: [installJar],
    async generate(run, place) {
      const names = ['--git-host', 'example.com', '--git-user-id', 'acme', '--git-repo-id', 'ledger'];
      await run(openApiGenerator('go', place, ...names, '--additional-properties=packageName=ledger'), place.folder);
      const client = join(place.folder, 'client');
      await mkdir(join(client, 'cmd/call'), { recursive: true });
      await copyFile(join(calls, 'openapi-generator.go'), join(client, 'cmd/call/main.go'));
      await runGo(run, client, './cmd/call');
    },
  },
  {
    name: 'openapi-generator: java',
    tools: [installJar],
    async generate(run, place) {
      await run(openApiGenerator('java', place, '--library', 'native'), place.folder);
      const client = join(place.folder, 'client');
      await copyFile(join(calls, 'OpenApiGenerator.java'), join(client, 'src/main/java/OpenApiGenerator.java'));
      const classpath = join(client, 'classpath');
      await run(['mvn', '-q', 'compile', 'dependency:build-classpath', `-Dmdep.outputFile=${classpath}`], client);
      const libraries = (await readFile(classpath, 'utf8')).trim();
      await run(['java', '-cp', `target/classes:${libraries}`, 'OpenApiGenerator'], client);
    },
  },
  {
    name: 'openapi-python-client',
    tools: [installPython],
    async generate(run, place) {
      const client = join(place.folder, 'client');
      // It calls the formatter that is installed beside it.
      const env = { PATH: `${join(cache, 'python/bin')}:${process.env.PATH}` };
      const tool = [python, '-m', 'openapi_python_client', 'generate', '--fail-on-warning'] as const;
      await run([...tool, '--meta', 'poetry', '--path', place.document, '--output-path', client], place.folder, env);
      await run([python, '-m', 'compileall', '-q', 'client'], place.folder);
      await run([python, join(calls, 'openapi-python-client.py')], place.folder, { PYTHONPATH: client });
    },
  },
  {
    name: 'openapi-typescript',
    tools: [installNpm],
    async generate(run, place) {
      const tool = join(cache, 'npm/node_modules/openapi-typescript/bin/cli.js');
      await run([node, tool, place.document, '-o', join(place.folder, 'client/schema.ts')], place.folder);
      await runTypeScript(run, place, 'openapi-typescript.ts');
    },
  },
  {
    name: 'oapi-codegen',
    tools: [installOapiCodegen],
    async generate(run, { document, folder }) {
      await mkdir(join(folder, 'api'));
      const options = ['-generate', 'types,client,skip-prune', '-package', 'api', '-o', 'api/api.go'] as const;
      await run([join(cache, 'oapi-codegen'), ...options, document], folder);
      await copyFile(join(calls, 'oapi-codegen.go'), join(folder, 'main.go'));
      await run(['go', 'mod', 'init', 'example.com/acme/oapi'], folder);
      await runGo(run, folder, '.');
    },
  },
];

async function runGo(run: Run, folder: string, program: string): Promise<void> {
  await run(['go', 'mod', 'tidy'], folder);
  await run(['go', 'run', program], folder);
}

async function runTypeScript(run: Run, { folder }: Place, program: string): Promise<void> {
  await copyFile(join(calls, program), join(folder, program));
  await run([node, ...compileTypes, '--outDir', 'out', program], folder);
  await run([node, join('out', program.replace('.ts', '.js'))], folder);
}

/** Runs a command; throws with what it said if it fails. */
function runAt(baseUrl: string): Run {
  return ([program, ...args], cwd, env = {}) =>
    new Promise((done, failed) => {
      const child = spawn(program, args, {
        cwd,
        env: { ...process.env, BASE_URL: baseUrl, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let said = '';
      const gather = (data: Buffer) => {
        said = `${said}${data.toString()}`.slice(-8_000);
      };
      child.stdout.on('data', gather);
      child.stderr.on('data', gather);
      child.once('error', failed);
      child.once('close', (code) => {
        if (code === 0) done();
        else failed(new Error(`${[program, ...args].join(' ')} ended with ${code}:\n${said}`));
      });
    });
}

async function main(names: readonly string[]): Promise<void> {
  const chosen = generators.filter(({ name }) => names.length === 0 || names.some((part) => name.includes(part)));
  if (chosen.length === 0) throw new Error(`Generators: ${generators.map(({ name }) => name).join(', ')}`);
  await mkdir(cache, { recursive: true });
  // Below the folder of the npm packages, so that TypeScript and Node find them.
  await mkdir(join(cache, 'npm'), { recursive: true });
  const work = await mkdtemp(join(cache, 'npm/run-'));
  const data = await mkdtemp(join(tmpdir(), 'generators-'));
  let failures = 0;
  try {
    await using service = await startNodeProcess({ DATA_DIR: data });
    const document = join(work, 'openapi.json');
    await writeFile(document, await (await fetch(`${service.base}/openapi.json`)).text());
    await writeFile(join(work, 'package.json'), '{"private": true, "type": "module"}');
    const run = runAt(service.base);
    const installed = new Set<Installer>();
    for (const generator of chosen) {
      const folder = join(work, generator.name.replaceAll(/[^a-z]+/g, '-'));
      await mkdir(folder);
      try {
        for (const install of generator.tools) if (!installed.has(install)) await install(run);
        for (const install of generator.tools) installed.add(install);
        await generator.generate(run, { document, folder });
        process.stdout.write(`✓ ${generator.name}\n`);
      } catch (error) {
        failures += 1;
        process.stdout.write(`✗ ${generator.name}\n${error instanceof Error ? error.message : String(error)}\n`);
      }
    }
  } finally {
    if (failures === 0) await rm(work, { recursive: true, force: true });
    await rm(data, { recursive: true, force: true });
  }
  process.stdout.write(`${chosen.length - failures} passed, ${failures} failed\n`);
  process.exitCode = failures === 0 ? 0 : 1;
}

await main(process.argv.slice(2));
