import { ActorService } from '../../gen/svc/v1/actors_pb.ts';
import { DeveloperService } from '../../gen/svc/v1/developer_pb.ts';
import { EntityService } from '../../gen/svc/v1/entities_pb.ts';
import { ResolverService } from '../../gen/svc/v1/resolver_pb.ts';
import { exactlyOneOf, jsonRule, needsSomeField, noRestForm } from '../../service/encoding/json-field.ts';
import type { RestRoute } from '../endpoints/routes.ts';
import { errorStatuses } from './errors.ts';
import { type JsonObject, parameterSchema } from './format.ts';
import { groupOf } from './groups.ts';
import { answerHeadersOf, headersOf, securityOf } from './headers.ts';
import {
  commentOf,
  fieldExample,
  fieldSchema,
  messageExample,
  messageRef,
  type SchemaBook,
  scalarSchema,
} from './schema.ts';

/** Adds the schemas that the operation refers to to the book. */
export function operation(book: SchemaBook, route: RestRoute): JsonObject {
  const { method } = route;
  const description = commentOf(book, `${method.parent.typeName}.${method.name}`);
  return {
    operationId: method.name,
    tags: [groupOf(method)],
    summary: firstSentence(description),
    description,
    security: securityOf(route),
    // An actor with keys must sign the event that the call writes.
    ...(route.rule.signed ? { 'x-signed': true } : {}),
    parameters: [...pathAndQuery(book, route), ...headersOf(route)],
    ...requestBody(book, route),
    responses: {
      ...success(book, route),
      ...Object.fromEntries(
        errorStatuses(route).map((status) => [String(status), { $ref: `#/components/responses/Error${status}` }]),
      ),
    },
  };
}

function firstSentence(text: string): string {
  return /^.*?[.](?=\s|$)/.exec(text)?.[0] ?? text;
}

function pathAndQuery(book: SchemaBook, route: RestRoute): JsonObject[] {
  const parameters: JsonObject[] = [];
  for (const field of route.method.input.fields) {
    const inPath = route.pathParams.includes(field.name);
    if (!inPath && route.hasBody) continue;
    if (field.fieldKind !== 'scalar') throw noRestForm(field);
    const required = inPath || jsonRule(field).required;
    parameters.push({
      name: field.name,
      in: inPath ? 'path' : 'query',
      required,
      description: commentOf(book, `${field.parent.typeName}.${field.name}`),
      schema: parameterSchema(field.name, inPath, scalarSchema(field, field.scalar)),
      // The documentation page fills in examples. Optional filters should stay empty there.
      ...(required ? { example: fieldExample(field) } : {}),
    });
  }
  return parameters;
}

function requestBody(book: SchemaBook, route: RestRoute): JsonObject {
  if (!route.hasBody) return {};
  const { input } = route.method;
  const fields = input.fields.filter((field) => !route.pathParams.includes(field.name));
  if (fields.length === 0) return {};
  return {
    requestBody: {
      required:
        fields.some((field) => jsonRule(field).required) || exactlyOneOf(input).length > 0 || needsSomeField(input),
      content: {
        'application/json': {
          schema: messageRef(book, input, 'request', route.pathParams),
          // Fields that exclude each other cannot all be in one example.
          example: messageExample(input, [...route.pathParams, ...leftOutOfExample(route)]),
        },
      },
    },
  };
}

/** An actor that is made without a key may call without signatures: who tries the example needs no private key. */
function leftOutOfExample(route: RestRoute): readonly string[] {
  if (route.method === DeveloperService.method.registerDeveloper) return ['public_key'];
  if (route.method === EntityService.method.onboardEntity) return ['public_key'];
  if (route.method === ActorService.method.createActor) return ['public_key', 'algorithm'];
  return exactlyOneOf(route.method.input).slice(1);
}

function success(book: SchemaBook, route: RestRoute): JsonObject {
  const headers = answerHeadersOf(route);
  if (route.emptyAnswer) return { '204': { description: commentOf(book, route.method.output.typeName), headers } };
  const nothing = route.rule.live ? { '204': { description: 'There is nothing more to follow.', headers } } : {};
  const notModified =
    route.method.parent === ResolverService ? { '304': { description: 'The document has not changed.', headers } } : {};
  return {
    '200': { description: commentOf(book, route.method.output.typeName), headers, content: content(book, route) },
    ...nothing,
    ...notModified,
  };
}

function content(book: SchemaBook, route: RestRoute): JsonObject {
  const { output } = route.method;
  if (route.rule.live) return liveContent(book, route);
  if (route.method.methodKind === 'server_streaming') {
    const lines = { schema: { type: 'string' } };
    return { 'text/plain': lines, 'text/event-stream': lines };
  }
  const field = route.responseBody;
  if (!field) {
    return { 'application/json': { schema: messageRef(book, output, 'answer'), example: messageExample(output) } };
  }
  return { 'application/json': { schema: fieldSchema(book, field, 'answer'), example: fieldExample(field) } };
}

/**
 * Server-sent events are text to a generator. The schemas of their data are in the document too: `x-events` names them
 * by event.
 */
function liveContent(book: SchemaBook, { method }: RestRoute): JsonObject {
  const events = method.output.fields.flatMap(({ name, message }) =>
    message === undefined ? [] : [{ name, message, schema: messageRef(book, message, 'answer') }],
  );
  const example = events.map(
    ({ name, message }) => `id: 7\nevent: ${name}\ndata: ${JSON.stringify(messageExample(message))}\n\n`,
  );
  return {
    'text/event-stream': {
      schema: { type: 'string' },
      example: example.join(''),
      'x-events': Object.fromEntries(events.map(({ name, schema }) => [name, schema])),
    },
  };
}
