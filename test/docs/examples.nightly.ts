import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeOn } from '../support/backends/for-tests.ts';
import { type RunningTestNode, runNode } from '../support/running-node.ts';
import { pythonPackages } from './toolchain.ts';

const run = promisify(execFile);
const examples = fileURLToPath(new URL('../../examples', import.meta.url));

/** Packages may have to be fetched. */
const timeout = 600_000;

/** One development node for all languages. */
let node: RunningTestNode;
beforeAll(async () => {
  node = await runNode({ env: {} });
});
afterAll(() => node[Symbol.asyncDispose]());

/** Runs the command of an example in its folder. Returns what it printed. */
async function outputOf(language: string, command: string, args: readonly string[], env = process.env) {
  const options = { cwd: join(examples, language), env: { ...env, BASE: node.base }, timeout };
  return (await run(command, args, options)).stdout;
}

const walked = 'verified: 4 events, 2 signatures, chain whole\nreceived: SHIPMENT_DISPATCHED, signed by the service\n';

/** A toolchain, if the command that shows its version is there and says one that `isNewEnough`. */
async function toolchain(command: string, args: readonly string[], isNewEnough: (version: number) => boolean) {
  const missing = (reason: string) => ({ kind: 'missing', reason }) as const;
  try {
    const { stdout } = await run(command, args);
    const minor = Number(/\d+\.(\d+)/.exec(stdout)?.[1]);
    if (!isNewEnough(minor)) return missing(`it is too old: ${stdout.trim()}`);
    return { kind: 'there', address: command, startupMs: 0, from: stdout.trim() } as const;
  } catch (error) {
    return missing(error instanceof Error ? error.message : String(error));
  }
}

/** The example imports the package by its name; here its sources stand for the package. */
function clientFromSources(): string {
  const client = JSON.stringify(new URL('../../src/client/index.ts', import.meta.url).href);
  const hook = `import { registerHooks } from 'node:module';
    registerHooks({ resolve: (name, context, next) => next(name === 'ledger-trust-client' ? ${client} : name, context) });`;
  return `data:text/javascript,${encodeURIComponent(hook)}`;
}

test.concurrent('the TypeScript example registers, signs, verifies, and receives a webhook', { timeout }, async () => {
  const args = ['--import', clientFromSources(), 'walk.ts'];
  expect(await outputOf('typescript', process.execPath, args)).toBe(walked);
});

const pythonRequirements = () => readFileSync(join(examples, 'python/requirements.txt'), 'utf8').trim().split('\n');

const python = await toolchain('python3', ['--version'], (minor) => minor >= 10);
describeOn('examples/python', 'Python 3.10', python, (command) => {
  test.concurrent('registers, signs, verifies, and receives a webhook', { timeout }, async () => {
    const env = await pythonPackages(...pythonRequirements());
    expect(await outputOf('python', command, ['walk.py'], env)).toBe(walked);
  });
});

const go = await toolchain('go', ['version'], (minor) => minor >= 24);
describeOn('examples/go', 'Go 1.24', go, (command) => {
  test.concurrent('registers, signs, verifies, and receives a webhook', { timeout }, async () => {
    expect(await outputOf('go', command, ['run', '.'])).toBe(walked);
  });
});

test('an example file has fewer than 150 lines, and those in other languages use nothing of ours', () => {
  const files = readdirSync(examples, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.(go|py|ts)$/.test(name),
  );
  expect(files.map(dirname)).toEqual(expect.arrayContaining(['go', 'python', 'typescript']));
  for (const name of files) {
    const text = readFileSync(join(examples, name), 'utf8');
    expect(text.split('\n').length, name).toBeLessThan(151);
    if (!name.endsWith('.ts')) expect(text, name).not.toMatch(/import.*ledger.trust|subprocess|os\/exec/);
  }
  expect(existsSync(join(examples, 'README.md'))).toBe(true);
});
