import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { base64Form, decodeBase64 } from '../../../../src/domain/keys/base64.ts';
import { restRoutes } from '../../../../src/rpc/endpoints/routes.ts';
import { openApiDocument } from '../../../../src/rpc/openapi/document.ts';
import type { BadValue } from '../../../support/bad-values.ts';
import { inputTable } from '../../../support/input-table.ts';

type Json = { readonly [key: string]: unknown };

interface Operation {
  readonly parameters: readonly Json[];
  readonly requestBody?: {
    readonly content: { readonly [type: string]: { readonly schema: { readonly $ref: string } } };
  };
}

const document = JSON.parse(JSON.stringify(openApiDocument())) as Json;
const schemas = (document.components as { readonly schemas: { readonly [name: string]: Json } }).schemas;
const ajv = new Ajv2020({ strict: false, validateFormats: false });

/** The schema of one field of a request, in the body, the path or the query. */
function fieldSchema(operation: Operation, field: string): Json {
  const parameter = operation.parameters.find(({ name }) => name === field);
  if (parameter !== undefined) return parameter.schema as Json;
  const ref = operation.requestBody?.content['application/json']?.schema.$ref.split('/').at(-1) ?? '';
  const { [field]: schema } = (schemas[ref]?.properties ?? {}) as { readonly [field: string]: Json };
  if (schema === undefined) throw new Error(`The document has no ${field}`);
  return schema;
}

/** Rules that go beyond the text of the value: a schema cannot say them. */
function isBeyondSchemas({ value, code }: BadValue): boolean {
  if (typeof value !== 'string') return true;
  // Points of the curve; names of keys and of namespaces that are well formed; half a character.
  const codes = ['reserved_event_type', 'namespace_reserved', 'invalid_string'];
  if (codes.includes(code)) return true;
  if (code === 'invalid_public_key') return decodeBase64(value, 32) !== null;
  if (code === 'not_found') return /^(svc:actor:[0-9a-f-]{36}#)?key-[1-9]/.test(value);
  // No such day; addresses where no webhook goes; an e-mail address and a cursor by their meaning.
  return /^2026-02-30|^http:\/\/8|^https:\/\/(10|\[)|@|^a b|^a$|^YS0x$/.test(value) && !value.includes('secret@');
}

const fields = restRoutes()
  .filter(({ alias }) => !alias)
  .flatMap((route) => {
    const paths = document.paths as { readonly [path: string]: { readonly [method: string]: Operation } };
    const operation = paths[route.template]?.[route.httpMethod.toLowerCase()];
    if (operation === undefined) throw new Error(`${route.template} is not documented`);
    const rules = Object.entries(inputTable[`${route.method.parent.name}.${route.method.name}`] ?? {});
    return rules.map(([field, kind]) => ({ name: `${route.method.name}.${field}`, operation, field, kind }));
  });

describe('the patterns of the OpenAPI document', () => {
  it('cover the fields of all requests', () => {
    expect(fields.length).toBeGreaterThan(150);
  });

  it.each(fields)('refuse what the service refuses as $name', ({ operation, field, kind }) => {
    const schema = fieldSchema(operation, field);
    // A format says what times are.
    if (schema.format === 'date-time') return;
    const accepts = ajv.compile(schema);
    const texts = kind.filter((bad) => !isBeyondSchemas(bad));
    expect(texts.map(({ value }) => value).filter((value) => accepts(value))).toEqual([]);
  });

  it('are regular expressions of every language', () => {
    const patterns = new Set<string>();
    JSON.stringify(document, (key, value: unknown) => {
      if (key === 'pattern') patterns.add(String(value));
      return value;
    });
    expect(patterns.size).toBeGreaterThan(12);
    // Neither look-around nor named groups nor classes of Unicode, and ASCII alone.
    for (const pattern of patterns) expect(pattern).not.toMatch(/\(\?[^:]|\\[pPdkuU]|[^ -~]/);
  });

  it('say of base64 exactly what the service decodes', () => {
    for (const [lengthBytes, text] of [
      [1, 'QQ=='],
      [1, 'QR=='],
      [2, 'QUE='],
      [2, 'QUF='],
      [3, 'QUFB'],
      [3, 'QUFBQUFB'],
      [4, 'QUFBQQ=='],
    ] as const) {
      expect([text, base64Form(lengthBytes).test(text)]).toEqual([text, decodeBase64(text, lengthBytes) !== null]);
    }
  });

  it('say that a ledger is opened with exactly one counterparty', () => {
    const accepts = ajv.compile(schemas.CreateLedgerRequest ?? {});
    const id = '0199aaaa-0000-7000-8000-000000000001';
    expect(accepts({ supplier_actor_id: id })).toBe(true);
    expect(accepts({ buyer_svc_id: `svc:actor:${id}`, buyer_organization_id: id })).toBe(true);
    expect(accepts({})).toBe(false);
    expect(accepts({ buyer_organization_id: id })).toBe(false);
    expect(accepts({ buyer_actor_id: id, buyer_svc_id: `svc:actor:${id}` })).toBe(false);
  });

  it('say that an organization is enriched with at least one value', () => {
    const paths = document.paths as { readonly [path: string]: { readonly patch?: { readonly requestBody: Json } } };
    expect(paths['/v1/organizations/{organization_id}/enrich']?.patch?.requestBody.required).toBe(true);
    const accepts = ajv.compile(schemas.EnrichOrganizationRequest ?? {});
    expect(accepts({ city: 'Augsburg' })).toBe(true);
    expect(accepts({ city: 'Augsburg', phone: null })).toBe(true);
    expect(accepts({})).toBe(false);
    expect(accepts({ city: null, phone: null })).toBe(false);
  });
});
