import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clusterConfigTable } from '../cluster/config-table.ts';
import { openApiDocument } from '../src/rpc/openapi/document.ts';
import { type ConfigVariable, configTable } from '../src/runtime/config/config-table.ts';
import { type ApiDocument, apiPage } from './api-page.ts';
import { errorCodesTable } from './error-codes.ts';
import { entityRequestsTable, exampleWorldTable, signingExamplesText } from './signing-examples.ts';
import { webhookLimitsTable } from './webhook-limits.ts';

/** Writes what the documentation repeats from the code into it: `node docs/make.ts`. A test fails where it was not run. */
const tables: ReadonlyMap<string, string> = new Map([
  ['configuration table', tableOf(configTable)],
  ['cluster configuration table', tableOf(clusterConfigTable)],
  ['webhook limits table', webhookLimitsTable()],
  ['error codes table', errorCodesTable()],
  ['entity requests table', entityRequestsTable()],
  ['example world table', exampleWorldTable()],
  ['signing examples', signingExamplesText()],
]);

/** The page with its made parts replaced. Each stands between the comment that names it and the next heading. */
export function withTables(page: string): string {
  return page.replace(/<!-- ([a-z ]+ (?:table|examples)) -->[\s\S]*?(?=\n## |$)/g, (text, name: string) => {
    const table = tables.get(name);
    return table === undefined ? text : `<!-- ${name} -->\n\n${table}\n`;
  });
}

function tableOf(variables: readonly ConfigVariable[]): string {
  const rows = variables.map(({ name, default: otherwise, meaning }) => `| \`${name}\` | ${otherwise} | ${meaning} |`);
  return ['| variable | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

/** docs/api.md */
export function apiText(): string {
  return apiPage(openApiDocument() as unknown as ApiDocument);
}

/** The pages that have made parts. */
export const madePages = ['operations.md', 'signing.md', 'errors.md'] as const;

if (import.meta.main) {
  for (const name of madePages) {
    const page = join(import.meta.dirname, name);
    writeFileSync(page, withTables(readFileSync(page, 'utf8')));
  }
  writeFileSync(join(import.meta.dirname, 'api.md'), apiText());
}
