import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configTable } from '../src/config.ts';

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

if (import.meta.main) {
  const file = join(import.meta.dirname, 'operations.md');
  writeFileSync(file, withConfigTable(readFileSync(file, 'utf8')));
}
