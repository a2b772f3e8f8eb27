import { describe, expect, it } from 'vitest';
import { openApiDocument } from '../../../../src/rpc/openapi/document.ts';

/** What client generators stumble over. `npm run test:generators` runs the generators themselves. */

type Json = { readonly [key: string]: unknown };

const document = JSON.parse(JSON.stringify(openApiDocument())) as Json;

/** All objects inside a value, with where they stand. */
function* objects(value: unknown, path = ''): Generator<{ readonly path: string; readonly object: Json }> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield { path, object: value as Json };
  for (const [name, inner] of Object.entries(value)) yield* objects(inner, `${path}/${name}`);
}

const all = [...objects(document)];
const operations = all.filter(({ object }) => typeof object.operationId === 'string');

describe('the OpenAPI document, as generators need it', () => {
  it('names its license by an SPDX identifier', () => {
    // openapi-generator refuses a 3.1 document without it.
    expect(document.info).toMatchObject({ license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } });
  });

  it('keeps the webhook out of the tags of services', () => {
    // Under a shared tag openapi-generator writes two classes into one file.
    const isWebhook = (path: string) => path.startsWith('/webhooks/');
    const tagsOf = (wanted: boolean) =>
      operations.filter(({ path }) => isWebhook(path) === wanted).flatMap(({ object }) => object.tags as string[]);
    expect(tagsOf(true)).toEqual(['Webhook receiver']);
    expect(tagsOf(false)).not.toContain('Webhook receiver');
    // openapi-generator's Python client of a webhook does not compile, and nobody needs it.
    expect(operations.filter(({ object }) => object['x-internal'] === true).map(({ path }) => path)).toEqual([
      '/webhooks/event/post',
    ]);
    expect(document.tags).toContainEqual(expect.objectContaining({ name: 'Webhook receiver' }));
  });

  it('has no date in a header or query', () => {
    // openapi-python-client leaves out operations with a date in a header. The Python client of openapi-generator
    // writes `+0000`, which is not RFC 3339, and what an X-Timestamp signs is its text.
    const parameters = all.filter(({ object }) => typeof object.in === 'string' && 'schema' in object);
    expect(parameters.length).toBeGreaterThan(100);
    for (const { path, object } of parameters) {
      expect([path, (object.schema as Json).format]).not.toEqual([path, 'date-time']);
    }
  });

  it('has no encoded content, for which Swagger UI shows a file chooser', () => {
    const encoded = all.filter(({ object }) => 'contentEncoding' in object || object.format === 'byte');
    expect(encoded.map(({ path }) => path)).toEqual([]);
  });

  it('names operations as methods are named: a verb and its object', () => {
    const names = operations.map(({ object }) => String(object.operationId));
    expect(names).toContain('GetHealth');
    for (const name of names) expect(name).toMatch(/^([A-Z][a-z]+){2,}$|^receiveEvent$/);
    expect(names.filter((name) => /At[A-Z]/.test(name))).toEqual([]);
  });

  it('has no schema that generators take for a choice of types', () => {
    const choices = all.filter(({ path, object }) => !path.includes('/if') && ('oneOf' in object || 'anyOf' in object));
    expect(choices.map(({ path }) => path)).toEqual([]);
    expect(all.filter(({ object }) => 'allOf' in object)).toEqual([]);
  });

  it('has no schema with the name of a type of a language', () => {
    const { schemas } = document.components as { readonly schemas: Json };
    for (const name of ['Error', 'Object', 'Map', 'Date']) expect(schemas).not.toHaveProperty(name);
    // oapi-codegen makes a type of this name for each operation.
    for (const { object } of operations) expect(schemas).not.toHaveProperty(`${object.operationId}Response`);
  });
});
