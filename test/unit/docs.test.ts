import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { apiText, withConfigTables } from '../../docs/make.ts';

const read = (name: string) => readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8');

test('the tables of variables in the documentation are those of the code', () => {
  expect(read('operations.md')).toContain('`SVC_MODE`');
  expect(read('operations.md')).toContain('`CASSANDRA_CONTACT_POINTS`');
  expect(withConfigTables(read('operations.md'))).toBe(read('operations.md'));
});

test('the page of the API is that of the descriptors', () => {
  expect(read('api.md')).toContain('### POST /v1/traceledger/master/{uuid}/events');
  expect(apiText()).toBe(read('api.md'));
});
