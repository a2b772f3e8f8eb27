import { readFileSync } from 'node:fs';
import type { DescMessage } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { Auth } from '../../../src/gen/svc/v1/options_pb.ts';
import { makeMatcher } from '../../../src/rpc/endpoints/path-template.ts';
import { apiServices, methodRule, type RestRoute, restRoutes } from '../../../src/rpc/endpoints/routes.ts';
import { openApiDocument } from '../../../src/rpc/openapi/document.ts';

interface Row {
  readonly method: string;
  readonly path: string;
  readonly auth: 'none' | 'bearer' | 'bearer_or_entity' | 'entity';
  readonly from: 'spec' | 'decisions';
  readonly signed?: boolean;
  readonly root?: boolean;
  readonly success?: number;
  readonly input: readonly string[];
  readonly answer?: readonly string[];
}

const vectorUrl = new URL('../../vectors/spec-endpoints.json', import.meta.url);
const rows = (JSON.parse(readFileSync(vectorUrl, 'utf8')) as { rows: Row[] }).rows;

const authNames: { readonly [auth in Row['auth']]: Auth } = {
  none: Auth.NONE,
  bearer: Auth.BEARER,
  bearer_or_entity: Auth.BEARER_OR_ENTITY,
  entity: Auth.ENTITY,
};

/** The row's path as templates are written: under /v1, without a trailing slash. */
function templateOf(row: Row): string {
  return `${row.root ? '' : '/v1'}${row.path}`.replace(/\/$/, '');
}

function keyOf(method: string, template: string): string {
  return `${method} ${template}`;
}

function routeOf(row: Row): RestRoute | undefined {
  return restRoutes().find((route) => route.httpMethod === row.method && route.template === templateOf(row));
}

/** Names of all fields of a message, those of nested messages behind a dot. */
function fieldPaths(desc: DescMessage): string[] {
  return desc.fields.flatMap((field) => [
    field.name,
    ...(field.message ? fieldPaths(field.message).map((inner) => `${field.name}.${inner}`) : []),
  ]);
}

type Operation = { security: object[]; responses: Record<string, unknown>; parameters: { $ref?: string }[] };

function documented(method: string, template: string): Operation | undefined {
  const paths = openApiDocument().paths as Record<string, Record<string, Operation>>;
  return paths[template]?.[method.toLowerCase()];
}

const securityNames: { readonly [auth in Row['auth']]: readonly string[] } = {
  none: [],
  bearer: ['ApiKey'],
  bearer_or_entity: ['ApiKey', 'EntityActorId+EntityActorType'],
  entity: ['EntityActorId+EntityActorType', 'ApiKey'],
};

describe('the endpoint tables', () => {
  it('name each endpoint once', () => {
    expect(new Set(rows.map((row) => keyOf(row.method, templateOf(row)))).size).toBe(rows.length);
    expect(rows.filter((row) => row.from === 'spec')).toHaveLength(59);
    expect(rows.filter((row) => row.from === 'decisions')).toHaveLength(15);
  });

  it.each(rows.map((row) => [keyOf(row.method, templateOf(row)), row] as const))('%s is a route', (_key, row) => {
    const route = routeOf(row);
    if (!route) throw new Error('There is no such route');
    expect(route.rule.auth).toBe(authNames[row.auth]);
    expect(route.rule.signed).toBe(row.signed ?? false);
    expect(route.emptyAnswer).toBe(row.success === 204);

    // The document has the main path alone.
    const main = restRoutes().find(({ method, alias }) => method === route.method && !alias);
    const operation = documented(row.method, main?.template ?? '');
    if (!operation) throw new Error('It is not documented');
    expect(operation.security.map((scheme) => Object.keys(scheme).join('+'))).toEqual(securityNames[row.auth]);
    expect(operation.responses).toHaveProperty(String(row.success ?? 200));
    const signing = operation.parameters.filter((parameter) => parameter.$ref?.endsWith('/ActorSig'));
    if (row.signed) expect(signing).toHaveLength(1);
    if (row.auth === 'none') expect(signing).toHaveLength(0);
  });

  it.each(rows.map((row) => [keyOf(row.method, templateOf(row)), row] as const))('%s has its fields', (_key, row) => {
    const route = routeOf(row);
    if (!route) throw new Error('There is no such route');
    const input = route.method.input.fields.map((field) => field.name);
    expect(input.filter((name) => !route.pathParams.includes(name)).sort()).toEqual([...row.input].sort());
    const answer = route.responseBody?.message ?? route.method.output;
    expect(fieldPaths(answer)).toEqual(expect.arrayContaining([...(row.answer ?? [])]));
  });

  it('find routes by path, with and without a trailing slash', () => {
    const match = makeMatcher(restRoutes());
    for (const row of rows) {
      const path = templateOf(row).replaceAll(/\{[a-z_]+\}/g, 'x');
      for (const asked of [path, `${path}/`]) {
        const found = match(row.method, asked);
        expect(found.kind === 'found' ? keyOf(found.route.httpMethod, found.route.template) : found.kind).toBe(
          keyOf(row.method, templateOf(row)),
        );
      }
    }
  });

  it('name every route and every documented operation', () => {
    const typed = rows.map((row) => keyOf(row.method, templateOf(row))).sort();
    expect(
      restRoutes()
        .map((route) => keyOf(route.httpMethod, route.template))
        .sort(),
    ).toEqual(typed);
    const paths = openApiDocument().paths as Record<string, object>;
    const documentedKeys = Object.entries(paths).flatMap(([template, item]) =>
      Object.keys(item).map((method) => keyOf(method.toUpperCase(), template)),
    );
    const aliases = restRoutes().filter(({ alias }) => alias);
    const others = aliases.map((route) => keyOf(route.httpMethod, route.template));
    expect([...documentedKeys, ...others].sort()).toEqual(typed);
  });
});

describe('the methods', () => {
  const methods = apiServices.flatMap((service) => service.methods);

  it('have a route except the stream of appends', () => {
    const routed = new Set(restRoutes().map((route) => route.method));
    expect(methods.filter((method) => !routed.has(method)).map((method) => method.name)).toEqual(['AppendEvents']);
  });

  it('write to ledgers if they are signed, and create anonymously only without a credential', () => {
    for (const method of methods) {
      const rule = methodRule(method);
      if (rule.signed) expect([method.name, rule.writesLedger]).toEqual([method.name, true]);
      if (rule.createsAnonymously) expect([method.name, rule.auth]).toEqual([method.name, Auth.NONE]);
    }
  });

  it('that create without a credential are limited by address', () => {
    const creating = methods.filter((method) => methodRule(method).createsAnonymously).map((method) => method.name);
    expect(creating.sort()).toEqual(['CreateActor', 'OnboardEntity', 'RegisterDeveloper', 'RunSandbox']);
    const anonymousWrites = restRoutes().filter((route) => route.rule.auth === Auth.NONE && route.httpMethod !== 'GET');
    for (const route of anonymousWrites) expect(route.rule.createsAnonymously).toBe(true);
  });
});
