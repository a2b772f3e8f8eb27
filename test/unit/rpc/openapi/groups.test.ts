import { expect, test } from 'vitest';
import { apiServices } from '../../../../src/rpc/endpoints/routes.ts';
import { openApiDocument } from '../../../../src/rpc/openapi/document.ts';
import { groupOf, groups } from '../../../../src/rpc/openapi/groups.ts';

const methods = apiServices.flatMap((service) => service.methods);

test('each method is in one group', () => {
  const grouped = groups.flatMap((group) => group.methods);
  expect(new Set(grouped).size).toBe(grouped.length);
  expect(new Set(grouped)).toEqual(new Set(methods));
  for (const method of methods) expect(groupOf(method)).toEqual(expect.any(String));
});

test('groups have names for people, registration is first and health is last', () => {
  const names = groups.map(({ name }) => name);
  expect(names.filter((name) => /Service|[a-z][A-Z]/.test(name))).toEqual([]);
  expect([names[0], names.at(-1)]).toEqual(['Register', 'Health']);
  const story = ['Register', 'Ledgers', 'Masters', 'Events', 'Grants', 'Actors and keys', 'Webhooks', 'Resolver'];
  expect(names.filter((name) => story.includes(name))).toEqual(story);
});

test('no example of a request has a public key that enrols', () => {
  const { paths } = openApiDocument() as { paths: Record<string, Record<string, { requestBody?: object }>> };
  const bodies = Object.values(paths).flatMap((verbs) => Object.values(verbs).map(({ requestBody }) => requestBody));
  const keys = [...JSON.stringify(bodies).matchAll(/"public_key":"([^"]*)"/g)].map(([, key]) => key);
  // 32 zero bytes are a point of order 4, which the service refuses.
  expect(keys).toEqual([Buffer.alloc(32).toString('base64')]);
});
