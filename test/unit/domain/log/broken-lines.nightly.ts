import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { brokenLines } from './broken-lines.ts';

const root = resolve(import.meta.dirname, '../../../..');
const tests = 'test/unit/domain/log';
const copy = mkdtempSync(join(tmpdir(), 'broken-lines-'));
afterAll(() => rmSync(copy, { recursive: true, force: true }));

const support = readdirSync(join(root, 'test/support')).filter((name) =>
  /^(?:log-|vectors|nonce-zero|ed25519-|nightly)/.test(name),
);
for (const path of [
  'package.json',
  'src/domain',
  tests,
  'test/vectors',
  'conformance/vectors',
  ...support.map((name) => `test/support/${name}`),
]) {
  mkdirSync(join(copy, dirname(path)), { recursive: true });
  cpSync(join(root, path), join(copy, path), { recursive: true });
}
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
const config = `export default { test: {
  experimental: { viteModuleRunner: false }, isolate: false, maxWorkers: 1, testTimeout: 100_000,
  include: ['${tests}/*.test.ts'], exclude: ['**/broken-lines.test.ts'],
} };`;
writeFileSync(join(copy, 'vitest.config.mjs'), config);

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
    }[];
  }[];
}

type Titles = (typeof brokenLines)[number]['fails'];

/**
 * Runs the tests whose titles begin so; all if there are none. Answers `file: title`. A file that cannot load throws.
 */
function run(titles: Titles): { readonly failed: readonly string[]; readonly all: readonly string[] } {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const filters = Object.keys(titles).map((name) => `${tests}/${name}.test.ts`);
  // What joins the titles of suites and tests differs between Vitest's versions.
  const escaped = (title: string) => title.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&').replaceAll(' > ', '.{1,3}');
  const pattern = Object.values(titles).flat().map(escaped).join('|');
  const args = [vitest, 'run', '--reporter=json', '--outputFile=report.json', ...filters];
  if (pattern !== '') args.push('-t', pattern);
  spawnSync(process.execPath, args, { cwd: copy, env: { ...process.env, VITEST: undefined } });
  const report: Report = JSON.parse(readFileSync(join(copy, 'report.json'), 'utf8'));
  rmSync(join(copy, 'report.json'));
  const results = report.testResults.flatMap(({ name, message, assertionResults }) => {
    if (assertionResults.length === 0) throw new Error(`${name}: ${message}`);
    const file = name.slice(name.lastIndexOf('/') + 1).replace('.test.ts', '');
    return assertionResults.map(({ ancestorTitles, title, status }) => ({
      title: `${file}: ${[...ancestorTitles, title].join(' > ')}`,
      status,
    }));
  });
  return {
    all: results.map(({ title }) => title),
    failed: results.filter(({ status }) => status === 'failed').map(({ title }) => title),
  };
}

const named = (fails: Titles) =>
  Object.entries(fails).flatMap(([file, titles]) => titles.map((title) => `${file}: ${title}`));

test('the list names every test, and all of them pass as long as no line is broken', { timeout: 600_000 }, () => {
  const { all, failed } = run({});
  expect(failed).toEqual([]);
  expect(all.length).toBeGreaterThan(400);
  const inList = brokenLines.flatMap(({ fails }) => named(fails));
  expect(all.filter((title) => !inList.some((beginning) => title.startsWith(beginning)))).toEqual([]);
});

test.each(brokenLines)('tests fail if $line in $file is $broken', { timeout: 600_000 }, (entry) => {
  const path = join(copy, 'src/domain', entry.file);
  const text = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    text.replace(entry.line, () => entry.broken),
  );
  try {
    const { failed } = run(entry.fails);
    const passed = named(entry.fails).filter((beginning) => !failed.some((title) => title.startsWith(beginning)));
    expect(passed).toEqual([]);
  } finally {
    writeFileSync(path, text);
  }
});
