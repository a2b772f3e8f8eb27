import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DescMessage, DescMethod } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { apiText, madePages, withTables } from '../../../docs/make.ts';
import { apiServices, restRoutes } from '../../../src/rpc/endpoints/routes.ts';
import { schemaName } from '../../../src/rpc/openapi/schema.ts';

const read = (name: string) => readFileSync(join(import.meta.dirname, '../../../docs', name), 'utf8');

test('the tables of variables and limits in the documentation are those of the code', () => {
  expect(read('operations.md')).toContain('`SVC_MODE`');
  expect(read('operations.md')).toContain('`CASSANDRA_CONTACT_POINTS`');
  expect(read('webhooks.md')).toContain('| 5 | 2 h after attempt 4 has failed |');
  expect(read('webhooks.md')).toContain('| attempts at one target at once, a node | 4 |');
  expect(read('operations.md')).toContain('| attempts at once, a node | 64 |');
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
      .filter((name) => /\.(?:ts|mjs|proto|json)$/.test(name))
      .map((name) => join(folder, name)),
  );
  const named = sources.flatMap((path) => filesNamed(textOf(path)));
  expect(named.length).toBeGreaterThan(100);
  expect(new Set(named.filter((path) => !existsSync(join(root, path))))).toEqual(new Set(otherFiles));
  const documents = sources.flatMap((path) =>
    [...textOf(path).matchAll(/(?<![\w./-])[\w-]+\.md\b/g)].map(([name]) => `${name} in ${path}`),
  );
  const known = new Set(pages.map((page) => basename(page)));
  expect(documents.length).toBeGreaterThan(10);
  expect(documents.filter((text) => !known.has(text.split(' ', 1)[0] ?? ''))).toEqual([]);
});

/** What CONTRIBUTING.md names in backticks that is no path: names in code, of files and of members such as `a.b`. */
const namesIn = (text: string) =>
  [...text.replace(/^ *```[\s\S]*?^ *```$/gm, '').matchAll(/`(#?[a-z][\w-]*(?:\.[\w-]+)*)`/gi)].map(
    ([, name = '']) => name,
  );

test('every name of code and of a file in CONTRIBUTING.md is in the tree', () => {
  const files = ['src', 'cluster', 'test', 'bench', 'docs', 'proto']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
    )
    .filter((path) => /\.\w+$/.test(path) && !path.startsWith('src/gen/'));
  const fileNames = new Set([...files, ...pages].map((path) => basename(path)));
  const code = [...files.filter((path) => /\.(?:ts|mjs|proto)$/.test(path)), 'package.json'].map(textOf);
  const words = new Set(code.flatMap((text) => text.match(/#?\w+(?:-\w+)*/g) ?? []));
  const isThere = (name: string) => fileNames.has(name) || name.split('.').every((part) => words.has(part));
  const named = namesIn(textOf('CONTRIBUTING.md'));
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter((name) => !isThere(name))).toEqual([]);
});

/** Lines of prose: not of tables, code, headings and lists of links. */
function proseOf(page: string): string[] {
  const text = textOf(page).replace(/^ *```[\s\S]*?^ *```$/gm, '');
  return text.split('\n').filter((line) => !/^\s*(?:\||<|#|- \[\w+\]\(#)/.test(line));
}

test('no line of prose or of a comment has more than 120 columns', () => {
  const tooLong = (line: string) => line.length > 120 && !/^\W*\S+$/.test(line);
  const prose = pages.flatMap((page) =>
    proseOf(page)
      .filter(tooLong)
      .map((line) => `${page}: ${line}`),
  );
  const folders = ['.ci', 'bench', 'client', 'cluster', 'docs', 'proto', 'src', 'test'];
  const comments = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder, name))
      .filter((path) => /\.(?:ts|mjs|proto|py)$/.test(path) && !/^src\/gen\/|node_modules|\/dist\//.test(path))
      .flatMap((path) => {
        const lines = textOf(path).split('\n');
        return lines
          .filter((line) => /^\s*(?:\/\/|\/?\*|#) /.test(line) && tooLong(line))
          .map((line) => `${path}: ${line}`);
      }),
  );
  expect([...prose, ...comments]).toEqual([]);
});

test('every link from one document to another leads to a file', () => {
  const links = pages.flatMap((page) =>
    [...textOf(page).matchAll(/\]\(([^)#:]+)\)/g)].map(([, target = '']) => join(dirname(page), target)),
  );
  expect(links.length).toBeGreaterThan(50);
  expect(links.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('every section of another document that is named in quotation marks is there', () => {
  const named = pages.flatMap((page) =>
    [
      ...textOf(page)
        .replaceAll(/\s+/g, ' ')
        .matchAll(/\]\(([^)#:]+\.md)\), "([^"]+)"/g),
    ].map(([, target = '', section = '']) => [join(dirname(page), target), section] as const),
  );
  expect(named.length).toBeGreaterThan(5);
  const isThere = (page: string, section: string) =>
    textOf(page)
      .split('\n')
      .some((line) => line.startsWith('#') && line.replace(/^#+ (?:\d+\. )?/, '') === section);
  expect(named.filter(([page, section]) => !isThere(page, section))).toEqual([]);
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

describe('the page of the API', () => {
  const page = read('api.md');
  const headings = [...page.matchAll(/^#{2,3} (.+)$/gm)].map(([, heading = '']) => heading);
  const slugs = headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );
  const sections = page.split(/^(?=#{2,3} )/m);
  const sectionOf = (heading: string) => sections.filter((text) => text.startsWith(`### ${heading}\n`));

  test('has no heading twice, and each link on it leads to one', () => {
    const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, slug = '']) => slug);
    expect(links.length).toBeGreaterThan(100);
    expect(new Set(slugs).size).toBe(slugs.length);
    expect(links.filter((slug) => !slugs.includes(slug))).toEqual([]);
  });

  test('lists every method and group in its contents', () => {
    const contents = page.slice(0, page.indexOf('\n## '));
    const shown = slugs.slice(0, slugs.indexOf('types') + 1);
    expect(shown.length).toBeGreaterThan(70);
    expect(shown.filter((slug) => !contents.includes(`](#${slug})`))).toEqual([]);
  });

  test('shows every field of every message of the API once', () => {
    const messages = new Set<DescMessage>();
    const collect = (message: DescMessage): void => {
      if (messages.has(message)) return;
      messages.add(message);
      for (const field of message.fields) if (field.message) collect(field.message);
    };
    const methods = apiServices.flatMap((service) => service.methods);
    for (const { input, output } of methods) [input, output].forEach(collect);
    const used = new Map<string, number>();
    for (const message of messages) {
      const rows = sectionOf(schemaName(message));
      if (rows.length > 0) used.set(schemaName(message), rows.length);
      for (const { name } of rows.length > 0 ? message.fields : []) expect(rows[0]).toContain(`| \`${name}\` | `);
    }
    expect([...used.values()].filter((times) => times !== 1)).toEqual([]);
    expect(used.size).toBeGreaterThan(19);
    // All other messages are the request or the answer of one method, which shows their fields.
    for (const method of methods) {
      const { name, input, output } = method;
      const text = sections.find((section) => section.includes(`\`${name}\` ·`)) ?? sectionOf(name)[0] ?? '';
      const shown = [input, output].filter((message) => !used.has(schemaName(message)) && !isShownAsArray(method));
      const fields = shown.flatMap((message) => message.fields.map((field) => field.name));
      const isLines = method.methodKind === 'server_streaming';
      expect([name, isLines ? [] : fields.filter((field) => !text.includes(`| \`${field}\` | `))]).toEqual([name, []]);
    }
  });

  test('has an example of each request and of each answer that has a body', () => {
    const operations = sections.filter((text) => /^### (GET|POST|PATCH|DELETE) /.test(text));
    expect(operations.length).toBe(restRoutes().filter(({ alias }) => !alias).length);
    const silent = operations.filter(
      (text) =>
        !text.includes('The same as [') &&
        !(text.includes('```http\n') && /```json\n|```text\nid: |Answers 204\./.test(text)),
    );
    // It answers with lines of text.
    expect(silent.map((text) => text.split('\n', 1)[0])).toEqual(['### GET /v1/sandbox/run']);
  });
});

/** REST answers with one field of the message, and the page shows its type. */
function isShownAsArray(method: DescMethod): boolean {
  return restRoutes().some((route) => route.method === method && route.responseBody !== null);
}

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

test('everything that verify can find is in the page on verifying, and the threat model names nothing else', () => {
  const types = [
    'src/client/verify/verification.ts',
    'src/domain/event/integrity.ts',
    'src/domain/ledger/decision-fault.ts',
  ].flatMap((path) => [...textOf(path).matchAll(/^ {2}\| '(\w+)'/gm)].map(([, type = '']) => type));
  const known = new Set([...types, 'malformed_event']);
  expect(known.size).toBeGreaterThan(15);
  expect([...known].filter((type) => !read('verifying.md').includes(`\`${type}\``))).toEqual([]);
  const found = [
    ...read('threat-model.md').matchAll(/`((?:invalid|hash|broken|missing|dated|not)_\w+|\w+_untrusted)`/g),
  ];
  expect(found.length).toBeGreaterThan(10);
  expect(found.map(([, type = '']) => type).filter((type) => !known.has(type))).toEqual([]);
});
