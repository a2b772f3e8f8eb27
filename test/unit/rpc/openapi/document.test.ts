import { create } from '@bufbuild/protobuf';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { statusOf } from '../../../../src/rpc/call/status.ts';
import { parseTemplate } from '../../../../src/rpc/endpoints/path-template.ts';
import { restRoutes } from '../../../../src/rpc/endpoints/routes.ts';
import { openApiBytes, openApiDocument } from '../../../../src/rpc/openapi/document.ts';
import { schemaName } from '../../../../src/rpc/openapi/schema.ts';
import { restJson } from '../../../../src/service/encoding/message-json.ts';

type Json = { [key: string]: unknown };

const document = JSON.parse(JSON.stringify(openApiDocument())) as Json;

function at(pointer: string): unknown {
  let value: unknown = document;
  for (const part of pointer.replace(/^#\//, '').split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name))
      throw new Error(`Nothing at ${pointer}`);
    value = (value as Json)[name];
  }
  return value;
}

function walk(value: unknown, visit: (object: Json) => void): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) visit(value as Json);
  for (const inner of Object.values(value)) walk(inner, visit);
}

interface Operation extends Json {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: string[];
  readonly security: Json[];
  readonly parameters: Json[];
  readonly requestBody?: { content: Record<string, { schema: Json; example: unknown }> };
  readonly responses: Record<string, Json>;
}

const paths = document.paths as Record<string, Record<string, Operation>>;
const operations = Object.entries(paths).flatMap(([template, item]) =>
  Object.entries(item).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${template}`,
    template,
    operation,
  })),
);

/** A parameter itself, where it is given by reference. */
function resolved(parameter: Json): Json {
  return typeof parameter.$ref === 'string' ? (at(parameter.$ref) as Json) : parameter;
}

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema({ $id: 'https://api.test/', ...document });

/** Checks a value against a schema whose references point into the document. */
function failures(schema: Json, value: unknown): unknown {
  const text = JSON.stringify(schema).replaceAll('"#/components/', '"https://api.test/#/components/');
  const validate = ajv.compile(JSON.parse(text) as Json);
  validate(value);
  return validate.errors;
}

describe('the OpenAPI document', () => {
  it('is OpenAPI 3.1 and has one operation a method, at its main path', () => {
    expect(document).toMatchObject({ openapi: '3.1.0', info: { title: expect.any(String), version: 'v1' } });
    const main = restRoutes().filter(({ alias }) => !alias);
    expect(operations.map(({ name, operation }) => `${name} ${operation.operationId}`)).toEqual(
      main.map(({ httpMethod, template, method }) => `${httpMethod} ${template} ${method.name}`),
    );
  });

  it('is written once: all answers share its bytes', () => {
    const [first, second] = [openApiBytes(), openApiBytes()];
    expect(first === second).toBe(true);
  });

  it('has no broken reference, and no component without a reference', () => {
    const used = new Set<string>();
    walk(document, (object) => {
      if (typeof object.$ref === 'string') used.add(object.$ref);
    });
    expect(used.size).toBeGreaterThan(100);
    for (const pointer of used) expect(() => at(pointer)).not.toThrow();
    for (const kind of ['schemas', 'parameters', 'headers']) {
      for (const name of Object.keys(at(`#/components/${kind}`) as Json))
        expect(used).toContain(`#/components/${kind}/${name}`);
    }
    const responses = Object.keys(at('#/components/responses') as Json);
    // A method that a path does not take belongs to no operation of that path.
    expect(responses.filter((name) => !used.has(`#/components/responses/${name}`))).toEqual(['Error405']);
  });

  it('names each operation once and describes it under a tag that exists', () => {
    const tags = (document.tags as { name: string }[]).map((tag) => tag.name);
    expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length);
    for (const { operation } of operations) {
      expect(operation.operationId).toMatch(/^[A-Za-z]+[A-Za-z0-9]*$/);
      expect(operation.description.length).toBeGreaterThan(10);
      expect(operation.summary).toMatch(/\.$/);
      for (const tag of operation.tags) expect(tags).toContain(tag);
    }
  });

  it('names only credentials that it declares', () => {
    const schemes = Object.keys(at('#/components/securitySchemes') as Json);
    for (const { operation } of operations) {
      for (const alternative of operation.security)
        for (const name of Object.keys(alternative)) expect(schemes).toContain(name);
    }
  });

  it.each(operations)('$name has the parameters of its path, each once', ({ template, operation }) => {
    const parameters = operation.parameters.map(resolved);
    const keys = parameters.map((parameter) => `${parameter.in} ${String(parameter.name).toLowerCase()}`);
    expect(new Set(keys).size).toBe(keys.length);
    const inPath = parameters.filter((parameter) => parameter.in === 'path');
    const params = parseTemplate(template).flatMap((segment) => (segment.kind === 'param' ? [segment.name] : []));
    expect(inPath.map((parameter) => parameter.name)).toEqual(params);
    for (const parameter of inPath) expect(parameter.required).toBe(true);
    for (const parameter of parameters) {
      expect(parameter.description).toEqual(expect.any(String));
      expect(parameter.schema).toEqual(expect.any(Object));
    }
  });

  it.each(operations)('$name has valid examples', ({ operation }) => {
    for (const parameter of operation.parameters.map(resolved)) {
      if ('example' in parameter) expect(failures(parameter.schema as Json, parameter.example)).toBeNull();
    }
    const answer = operation.responses['200'] as Partial<NonNullable<Operation['requestBody']>> | undefined;
    for (const body of [operation.requestBody, answer]) {
      const json = body?.content?.['application/json'];
      if (json) expect(failures(json.schema, json.example)).toBeNull();
    }
    for (const response of Object.values(operation.responses))
      expect(resolved(response).description).toEqual(expect.any(String));
  });

  it('describes every field of every schema', () => {
    for (const [name, schema] of Object.entries(at('#/components/schemas') as Record<string, Json>)) {
      if (name.startsWith('Error')) continue;
      expect([name, schema.description]).toEqual([name, expect.stringMatching(/\w.*\.$/)]);
      for (const [field, inner] of Object.entries(schema.properties as Record<string, Json>)) {
        expect([name, field, inner.description]).toEqual([name, field, expect.stringMatching(/\w.*[.;:]$|\.$/)]);
      }
    }
  });

  it('requires exactly those fields of an answer that an empty message is written with', () => {
    for (const route of restRoutes()) {
      if (route.emptyAnswer || route.responseBody || route.method.methodKind !== 'unary') continue;
      const { output } = route.method;
      const schema = at(`#/components/schemas/${schemaName(output)}`) as { required: string[]; properties: Json };
      const written = Object.keys(JSON.parse(restJson(output, create(output))));
      expect([output.name, written]).toEqual([output.name, schema.required]);
      expect(Object.keys(schema.properties)).toEqual(output.fields.map((field) => field.name));
    }
  });

  it('refuses a misspelt field, null for a required one and a missing one', () => {
    const schema = { $ref: '#/components/schemas/GrantOrganizationDelegationRequest' };
    const id = '0199aaaa-0000-7000-8000-000000000001';
    const grant = { organization_id: id, delegate_actor_id: id, role: 'OPS' };
    expect(failures(schema, grant)).toBeNull();
    expect(failures(schema, { ...grant, permissions: null })).toBeNull();
    expect(failures(schema, { ...grant, permisions: {} })).not.toBeNull();
    expect(failures(schema, { ...grant, permissions: 'write' })).not.toBeNull();
    expect(failures(schema, { ...grant, role: null })).not.toBeNull();
    expect(failures(schema, { ...grant, role: '1 bad role' })).not.toBeNull();
    expect(failures(schema, { organization_id: id, role: 'OPS' })).not.toBeNull();
  });

  it('keeps a field of the path out of the body', () => {
    const { properties } = at('#/components/schemas/AppendEventRequest') as { properties: Json };
    expect(Object.keys(properties)).toEqual(['event_type', 'payload']);
  });

  it('lists each error code under its status, and the envelope', () => {
    const codes = at('#/components/schemas/ErrorBody/properties/code/enum') as Parameters<typeof statusOf>[0][];
    expect(codes).toHaveLength(37);
    for (const code of codes) {
      const response = at(`#/components/responses/Error${statusOf(code).http}`) as Json;
      expect(response.description).toContain(`\`${code}\``);
    }
    for (const response of Object.values(at('#/components/responses') as Record<string, Json>)) {
      const json = (response.content as Record<string, { schema: Json; example: Json }>)['application/json'];
      if (!json) throw new Error('An error without its envelope');
      expect(failures(json.schema, json.example)).toBeNull();
    }
  });

  it('lists the signing headers and the idempotency key of each call', () => {
    const headersOf = (name: string) =>
      operations
        .find((entry) => entry.name === name)
        ?.operation.parameters.map((parameter) => resolved(parameter).name);
    expect(headersOf('PATCH /v1/ledgers/{ledger_id}/close')).toEqual(
      expect.arrayContaining(['Idempotency-Key', 'X-Signing-Key-ID', 'X-Actor-Sig']),
    );
    expect(headersOf('DELETE /v1/webhooks/{id}')).toContain('Idempotency-Key');
    expect(at('#/paths/~1v1~1webhooks~1{id}/delete/responses/204/headers')).toHaveProperty('Idempotent-Replayed');
    expect(headersOf('POST /v1/traceledger/master/{uuid}/events')).toContain('X-Delivery-Chain');
    expect(headersOf('POST /v1/actors')).not.toContain('Idempotency-Key');
    expect(headersOf('GET /v1/ledgers')).toEqual(expect.not.arrayContaining(['Idempotency-Key', 'X-Actor-Sig']));
  });

  it('lists what an idempotency key can be answered with on each call that takes one, those without a body too', () => {
    const keyed = operations.filter(({ operation }) =>
      operation.parameters.some((parameter) => resolved(parameter).name === 'Idempotency-Key'),
    );
    expect(keyed.map(({ name }) => name)).toContain('DELETE /v1/developer/keys/{key_id}');
    for (const { name, operation } of keyed)
      expect([name, Object.keys(operation.responses)]).toEqual([name, expect.arrayContaining(['409', '422', '504'])]);
  });

  it('gives no pattern to headers that a call without a signature, or a replay, is not refused for', () => {
    const parameters = at('#/components/parameters') as Record<string, Json>;
    for (const name of ['RequestId', 'SigningKeyId', 'ActorSig', 'ActorDigest', 'ActorCanonical', 'Timestamp'])
      expect([name, parameters[name]?.schema]).toEqual([name, { type: 'string' }]);
  });

  it('lists X-ACTOR-TYPE on the calls that write an event of the caller’s type, and on no other', () => {
    const named = operations.filter(({ operation }) =>
      operation.parameters.some((parameter) => resolved(parameter).name === 'X-ACTOR-TYPE'),
    );
    // Openings and closings of ledgers are events of type `service` whatever the caller says.
    expect(named.map(({ name }) => name).sort()).toEqual([
      'DELETE /v1/traceledger/master/{uuid}/access/{link_id}',
      'PATCH /v1/delegation/ledger',
      'PATCH /v1/delegation/master',
      'PATCH /v1/delegation/organization',
      'PATCH /v1/traceledger/master/{uuid}/close',
      'POST /v1/delegation/ledger',
      'POST /v1/delegation/master',
      'POST /v1/delegation/organization',
      'POST /v1/traceledger/master',
      'POST /v1/traceledger/master/{uuid}/access',
      'POST /v1/traceledger/master/{uuid}/events',
    ]);
  });

  it('has no secret, previous hash or IP address in any answer but those that make a secret', () => {
    const named = new Map<string, string[]>();
    for (const [name, schema] of Object.entries(at('#/components/schemas') as Record<string, Json>)) {
      for (const field of Object.keys(schema.properties as Json)) named.set(field, [...(named.get(field) ?? []), name]);
    }
    expect(named.get('api_key')).toEqual(['CreateApiKeyResult', 'ProductionIdentity', 'SandboxIdentity']);
    expect(named.get('secret')).toEqual(['CreateWebhookResult']);
    expect(named.get('fingerprint')).toEqual(['AuthorityKey', 'GetAuthorityResult', 'OnboardEntityResult']);
    // The proof of one event, whose reader may not read the event before it.
    expect(named.get('prev_hash')).toEqual(['GetLedgerInclusionResult']);
    for (const field of ['ip', 'ip_address', 'user_agent', 'command']) expect(named.has(field)).toBe(false);
  });
});
