import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configTable } from '../src/config.ts';
import { openApiDocument } from '../src/rpc/openapi.ts';
import { type ApiDocument, apiPage } from './api-page.ts';

/** Writes what the documentation repeats from the code into it: `node docs/make.ts`. A test fails where it was not run. */
const tableMark = /<!-- configuration table -->[\s\S]*?(?=\n## |$)/;

export function withConfigTable(page: string): string {
  const rows = configTable.map(
    ({ name, default: otherwise, meaning }) => `| \`${name}\` | ${otherwise} | ${meaning} |`,
  );
  const table = [
    '<!-- configuration table -->',
    '',
    '| variable | default | meaning |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
  return page.replace(tableMark, () => table);
}

/** docs/api.md */
export function apiText(): string {
  return apiPage(openApiDocument() as unknown as ApiDocument);
}

if (import.meta.main) {
  const operations = join(import.meta.dirname, 'operations.md');
  writeFileSync(operations, withConfigTable(readFileSync(operations, 'utf8')));
  writeFileSync(join(import.meta.dirname, 'api.md'), apiText());
}
