import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DescMessage, type DescMethod, fromJson, type JsonValue, toJson } from '@bufbuild/protobuf';
import { clusterSettings } from '../cluster/settings.ts';
import { nodeSettings } from '../src/node/settings.ts';
import { apiServices, type RestRoute, restRoutes } from '../src/rpc/endpoints/routes.ts';
import { readComments } from '../src/rpc/openapi/comments.ts';
import { openApiDocument } from '../src/rpc/openapi/document.ts';
import { groupOf } from '../src/rpc/openapi/groups.ts';
import { commentOf, messageExample, messageRef, type SchemaBook } from '../src/rpc/openapi/schema.ts';
import type { Settings } from '../src/runtime/config/setting.ts';
import { jsonRule } from '../src/service/encoding/json-field.ts';
import { type ApiDocument, apiPage, type RpcMethod } from './api-page.ts';
import { errorCodesTable } from './error-codes.ts';
import { entityRequestsTable, exampleWorldTable, signingExamplesText } from './signing-examples.ts';
import { receiverLimitsTable, webhookLimitsTable, webhookScheduleTable } from './webhook-limits.ts';

/**
 * Writes what the documentation repeats from the code into it: `node docs/make.ts`. A test fails where it was not run.
 */
const tables: ReadonlyMap<string, string> = new Map([
  ['configuration table', tableOf(nodeSettings)],
  ['cluster configuration table', tableOf(clusterSettings)],
  ['webhook limits table', webhookLimitsTable()],
  ['receiver limits table', receiverLimitsTable()],
  ['webhook schedule table', webhookScheduleTable()],
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

function tableOf(settings: Settings): string {
  const rows = Object.values(settings).map((setting) => {
    const otherwise = 'default' in setting ? setting.default : setting.whenUnset;
    return `| \`${setting.name}\` | ${otherwise} | ${setting.meaning} |`;
  });
  return ['| variable | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

/** docs/api.md */
export function apiText(): string {
  const routes = restRoutes();
  const idOf = ({ httpMethod, template }: RestRoute) => `${httpMethod} ${template}`;
  const inRest = new Set(routes.map(({ method }) => method));
  const book: SchemaBook = { comments: readComments(), schemas: new Map() };
  const rpcOnly = apiServices.flatMap(({ methods }) => methods.filter((method) => !inRest.has(method)));
  const more = {
    rpcOnly: rpcOnly.map((method) => rpcMethod(book, method)),
    rpcSchemas: Object.fromEntries(book.schemas),
    rpcPaths: new Map(routes.map((route) => [idOf(route), pathOf(route.method)])),
    signed: new Set(routes.filter((route) => route.rule.signed).map(idOf)),
  };
  return apiPage(openApiDocument() as unknown as ApiDocument, more);
}

function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

function rpcMethod(book: SchemaBook, method: DescMethod): RpcMethod {
  messageRef(book, method.input, 'request');
  messageRef(book, method.output, 'answer');
  return {
    name: method.name,
    group: groupOf(method),
    description: `\`${pathOf(method)}\`: ${commentOf(book, `${method.parent.typeName}.${method.name}`)}`,
    request: method.input.name,
    answer: method.output.name,
    requestExample: rpcExample(method.input),
    answerExample: rpcExample(method.output),
  };
}

/** An example in the JSON of protobuf, with the first field of each oneof. */
function rpcExample(desc: DescMessage): unknown {
  const others = desc.oneofs.flatMap(({ fields }) => fields.slice(1)).map(({ name }) => name);
  const example = messageExample(desc, others);
  for (const field of desc.fields)
    if (jsonRule(field).raw && field.name in example) example[field.name] = JSON.stringify(example[field.name]);
  const message = fromJson(desc, example as JsonValue);
  return toJson(desc, message, { useProtoFieldName: true, alwaysEmitImplicit: true });
}

/** The pages that have made parts. */
export const madePages = ['operations.md', 'webhooks.md', 'signing.md', 'errors.md'] as const;

if (import.meta.main) {
  for (const name of madePages) {
    const page = join(import.meta.dirname, name);
    writeFileSync(page, withTables(readFileSync(page, 'utf8')));
  }
  writeFileSync(join(import.meta.dirname, 'api.md'), apiText());
}
