import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withConfigTable } from '../../docs/make.ts';

test('the table of variables in the documentation is that of the code', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8');
  expect(page).toContain('`SVC_MODE`');
  expect(withConfigTable(page)).toBe(page);
});
