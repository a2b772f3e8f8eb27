import { type DescField, type DescMethod, type DescService, getOption } from '@bufbuild/protobuf';
import { services } from '../../client/services.ts';
import { http } from '../../gen/google/api/annotations_pb.ts';
import type { HttpRule } from '../../gen/google/api/http_pb.ts';
import { Auth, type MethodRule, rule } from '../../gen/svc/v1/options_pb.ts';
import { parseTemplate } from './path-template.ts';

export const apiServices: readonly DescService[] = services;

type RestMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface RestRoute {
  readonly httpMethod: RestMethod;
  /** For example `/v1/ledgers/{ledger_id}/events`; never ends in a slash. */
  readonly template: string;
  /** Names of the request fields in the path, in order. */
  readonly pathParams: readonly string[];
  /** The template split at its parameters: literals at even indexes, parameter names at odd ones. */
  readonly pathPieces: readonly string[];
  /** Whether the fields outside the path come from a JSON body, not from the query. */
  readonly hasBody: boolean;
  /** The field of the answer that is the whole REST answer; null if the answer message itself is. */
  readonly responseBody: DescField | null;
  /** REST answers 204. */
  readonly emptyAnswer: boolean;
  /** An earlier route of the same method exists and is the recommended one. */
  readonly alias: boolean;
  readonly method: DescMethod;
  readonly rule: MethodRule;
}

/** Throws for a method without the option `svc.v1.rule`, which is a mistake in the descriptors. */
export function methodRule(method: DescMethod): MethodRule {
  const found = getOption(method, rule);
  if (found.auth === Auth.UNSPECIFIED) throw new Error(`${method.parent.typeName}.${method.name} names no credential`);
  return found;
}

let routes: readonly RestRoute[] | undefined;

/** All REST routes, from the `google.api.http` options of the descriptors. Methods without the option have none. */
export function restRoutes(): readonly RestRoute[] {
  routes ??= Object.freeze(apiServices.flatMap((service) => service.methods.flatMap(routesOf)));
  return routes;
}

function routesOf(method: DescMethod): RestRoute[] {
  const main = getOption(method, http);
  if (main.pattern.case === undefined) return [];
  return [main, ...main.additionalBindings].map((binding, index) => {
    const { httpMethod, template } = bindingPath(method, binding);
    const pathParams = parseTemplate(template).flatMap((segment) => (segment.kind === 'param' ? [segment.name] : []));
    for (const name of pathParams) fieldNamed(method.input.fields, name, method);
    return Object.freeze({
      httpMethod,
      template,
      pathParams: Object.freeze(pathParams),
      pathPieces: Object.freeze(template.split(/\{([a-z0-9_]+)\}/)),
      hasBody: bodyRule(method, binding),
      responseBody: main.responseBody === '' ? null : fieldNamed(method.output.fields, main.responseBody, method),
      emptyAnswer: method.output.fields.length === 0,
      alias: index > 0,
      method,
      rule: methodRule(method),
    });
  });
}

function bindingPath(method: DescMethod, { pattern }: HttpRule): { httpMethod: RestMethod; template: string } {
  if (pattern.case === undefined || pattern.case === 'custom')
    throw new Error(`${method.name}: a REST route needs get, post, put, patch or delete`);
  return { httpMethod: pattern.case.toUpperCase() as RestMethod, template: pattern.value };
}

function bodyRule(method: DescMethod, binding: HttpRule): boolean {
  if (binding.body !== '' && binding.body !== '*') throw new Error(`${method.name}: a body is "*" or none`);
  return binding.body === '*';
}

function fieldNamed(fields: readonly DescField[], name: string, method: DescMethod): DescField {
  const field = fields.find((candidate) => candidate.name === name);
  if (!field) throw new Error(`${method.name}: its REST route names the unknown field ${name}`);
  return field;
}
