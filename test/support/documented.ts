import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { openApiDocument } from '../../src/rpc/openapi/document.ts';

type Json = { readonly [key: string]: unknown };

interface DocumentedRoute {
  readonly method: string;
  readonly path: RegExp;
  readonly pointer: string;
  readonly responses: { readonly [status: string]: Json };
}

const document = JSON.parse(JSON.stringify(openApiDocument())) as Json;
const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema({ $id: 'https://api.test/', ...document });

/** Paths without a variable come first: `/actors/lookup` is not an actor. */
const routes: readonly DocumentedRoute[] = Object.entries(document.paths as { [template: string]: Json })
  .sort(([a], [b]) => Number(a.includes('{')) - Number(b.includes('{')))
  .flatMap(([template, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path: new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}/?$`),
      pointer: `#/paths/${escaped(template)}/${method}/responses`,
      responses: (operation as { responses: { [status: string]: Json } }).responses,
    })),
  );

const checks = new Map<string, ValidateFunction | null>();

/** Deviations of an answer from `/openapi.json`, one sentence each; none for unknown paths. */
export function undocumented(method: string, path: string, status: number, text: string): string[] {
  const bare = path.split('?', 1)[0] ?? '';
  const route = routes.find((known) => known.method === method && known.path.test(bare));
  if (route === undefined) return [];
  const response = route.responses[status];
  if (response === undefined) return [`${method} ${bare}: the document has no ${status}`];
  const pointer = typeof response.$ref === 'string' ? response.$ref : `${route.pointer}/${status}`;
  let check = checks.get(pointer);
  if (check === undefined) {
    check = ajv.getSchema(`https://api.test/${pointer}/content/application~1json/schema`) ?? null;
    checks.set(pointer, check);
  }
  if (check === null) return [];
  const body: unknown = JSON.parse(text);
  const code = status < 400 ? undefined : (body as { error?: { code?: string } }).error?.code;
  const { description } = documentAt(pointer);
  if (code !== undefined && !String(description).includes(`\`${code}\``)) {
    return [`${method} ${bare}: the document has no ${code} under ${status}`];
  }
  return check(body)
    ? []
    : (check.errors ?? []).map((error) => `${method} ${bare} ${status}: ${error.instancePath} ${error.message}`);
}

/** What stands at a JSON pointer. */
function documentAt(pointer: string): Json {
  const parts = pointer
    .slice(2)
    .split('/')
    .map((part) => decodeURIComponent(part).replaceAll('~1', '/'));
  return parts.reduce<Json>((value, part) => value[part] as Json, document);
}

/** A template as a part of a JSON pointer in a URI. */
function escaped(template: string): string {
  return encodeURIComponent(template.replaceAll('~', '~0').replaceAll('/', '~1'));
}
