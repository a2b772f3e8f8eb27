import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { apiText, withConfigTable } from '../../docs/make.ts';

const read = (name: string) => readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8');

test('the table of variables in the documentation is that of the code', () => {
  expect(read('operations.md')).toContain('`SVC_MODE`');
  expect(withConfigTable(read('operations.md'))).toBe(read('operations.md'));
});

test('the page of the API is that of the descriptors', () => {
  expect(read('api.md')).toContain('### POST /v1/traceledger/master/{uuid}/events');
  expect(apiText()).toBe(read('api.md'));
});
