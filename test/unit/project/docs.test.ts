import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { apiText, withTables } from '../../../docs/make.ts';

const read = (name: string) => readFileSync(join(import.meta.dirname, '../../../docs', name), 'utf8');

test('the tables of variables and limits in the documentation are those of the code', () => {
  expect(read('operations.md')).toContain('`SVC_MODE`');
  expect(read('operations.md')).toContain('`CASSANDRA_CONTACT_POINTS`');
  expect(read('operations.md')).toContain('| attempts at one target at once, a node | 4 |');
  expect(withTables(read('operations.md'))).toBe(read('operations.md'));
});

test('every file that the documentation names is there', () => {
  const root = join(import.meta.dirname, '../../..');
  const pages = [
    'README.md',
    'CHANGELOG.md',
    'SECURITY.md',
    ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`),
  ];
  const named = pages
    .filter((name) => name.endsWith('.md'))
    .flatMap((page) => [
      ...readFileSync(join(root, page), 'utf8').matchAll(/`((?:src|cluster|test|bench|proto|docs)\/[\w./-]+)`/g),
    ])
    .map(([, path = '']) => path);
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('the page of the API is that of the descriptors', () => {
  expect(read('api.md')).toContain('### POST /v1/traceledger/master/{uuid}/events');
  expect(apiText()).toBe(read('api.md'));
});

test('every bound that webhooks have made known is in the list of their limits', () => {
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
