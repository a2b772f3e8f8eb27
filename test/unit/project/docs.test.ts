import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { apiText, madePages, withTables } from '../../../docs/make.ts';

const read = (name: string) => readFileSync(join(import.meta.dirname, '../../../docs', name), 'utf8');

test('the tables of variables and limits in the documentation are those of the code', () => {
  expect(read('operations.md')).toContain('`SVC_MODE`');
  expect(read('operations.md')).toContain('`CASSANDRA_CONTACT_POINTS`');
  expect(read('operations.md')).toContain('| attempts at one target at once, a node | 4 |');
});

test.each(madePages)('the made parts of %s are those of the code', (name) => {
  expect(withTables(read(name))).toBe(read(name));
});

const root = join(import.meta.dirname, '../../..');
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];
const textOf = (page: string) => readFileSync(join(root, page), 'utf8');

const filesNamed = (text: string) =>
  [...text.matchAll(/(?<![\w./-])(?:src|cluster|test|bench|docs|proto)\/[\w./-]+\.(?:ts|mjs|md|json|proto)\b/g)].map(
    ([path]) => path,
  );

test('every file that the documentation names exists', () => {
  const named = pages.flatMap((page) => [
    ...filesNamed(textOf(page)),
    // A folder.
    ...[...textOf(page).matchAll(/`((?:src|cluster|test|bench|proto|docs)\/[\w./-]+)`/g)].map(([, path = '']) => path),
  ]);
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

/** In the package grpc-health-check. */
const otherFiles = ['proto/health/v1/health.proto'];

test('every file that a source file names exists', () => {
  const sources = ['src', 'cluster', 'test', 'bench', 'docs', 'proto'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:ts|mjs|proto)$/.test(name))
      .map((name) => join(folder, name)),
  );
  const named = sources.flatMap((path) => filesNamed(textOf(path)));
  expect(named.length).toBeGreaterThan(100);
  expect(new Set(named.filter((path) => !existsSync(join(root, path))))).toEqual(new Set(otherFiles));
});

test('every link from one document to another leads to a file', () => {
  const links = pages.flatMap((page) =>
    [...textOf(page).matchAll(/\]\(([^)#:]+)\)/g)].map(([, target = '']) => join(dirname(page), target)),
  );
  expect(links.length).toBeGreaterThan(50);
  expect(links.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('every document is in the index of documents', () => {
  const index = textOf('docs/README.md');
  const inDocs = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md') && name !== 'README.md');
  const outside = readdirSync(root).filter((name) => name.endsWith('.md'));
  const expected = [...inDocs, ...outside.map((name) => `../${name}`)];
  expect(expected.filter((path) => !index.includes(`](${path})`))).toEqual([]);
});

test('every decision is dated, has its three headings, and is in the list of decisions', () => {
  const names = readdirSync(join(root, 'docs/adr'))
    .filter((name) => name !== 'README.md')
    .sort();
  const list = textOf('docs/adr/README.md');
  const form = /^# \d+\. .+\n\nDate: \d{4}-\d\d-\d\d\n\n## Context\n[\s\S]+\n## Decision\n[\s\S]+\n## Consequences\n/;
  expect(names.filter((name) => !form.test(textOf(`docs/adr/${name}`)))).toEqual([]);
  expect(names.filter((name) => !list.includes(`(${name})`))).toEqual([]);
  const numbers = names.map((name) => Number(name.slice(0, 4)));
  expect(numbers).toEqual(names.map((_, at) => at + 1));
});

test('the page of the API is made from the descriptors', () => {
  expect(read('api.md')).toContain('### POST /v1/traceledger/master/{uuid}/events');
  expect(apiText()).toBe(read('api.md'));
});

test('every published bound of webhooks is in the list of their limits', () => {
  const folder = join(import.meta.dirname, '../../../src/webhooks');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const bounds = files.flatMap((name) =>
    [...readFileSync(join(folder, name), 'utf8').matchAll(/^export const (\w+) = [\d_]/gm)].map(
      ([, bound = '']) => bound,
    ),
  );
  expect(bounds.length).toBeGreaterThan(10);
  const listed = readFileSync(join(import.meta.dirname, '../../../docs/webhook-limits.ts'), 'utf8');
  expect(bounds.filter((bound) => listed.match(new RegExp(`\\b${bound}\\b`, 'g'))?.length !== 2)).toEqual([]);
});
