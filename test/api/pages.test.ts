import { expect, test } from 'vitest';
import { openApiDocument } from '../../src/rpc/openapi/document.ts';
import { nodeForTests } from '../support/node-for-tests.ts';
import { expectRefused, rest } from '../support/parties-rest.ts';

const node = await nodeForTests();

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(node.base + path, { headers, redirect: 'manual' });

test.each(['/', '/docs', '/docs/', '/docs/swagger-ui.css', '/openapi.json', '/health', '/nothing'])(
  '%s returns a request id, the valid one of the caller if there is one',
  async (path) => {
    expect((await get(path)).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect((await get(path, { 'x-request-id': 'mine-1' })).headers.get('x-request-id')).toBe('mine-1');
    expect((await get(path, { 'x-request-id': 'not mine' })).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  },
);

test('the root redirects to the documentation, with or without a trailing slash', async () => {
  const root = await get('/');
  expect([root.status, root.headers.get('location')]).toEqual([302, '/docs']);
  expect([(await get('/docs')).status, (await get('/docs/')).status]).toEqual([200, 200]);
});

test('the served OpenAPI 3.1 document equals the one made from the descriptors', async () => {
  const answer = await get('/openapi.json');
  expect([answer.status, answer.headers.get('content-type')]).toEqual([
    200,
    expect.stringMatching(/^application\/json/),
  ]);
  const served = await answer.json();
  expect(served).toEqual(JSON.parse(JSON.stringify(openApiDocument())));
  expect(served).toMatchObject({ openapi: '3.1.0' });
});

test.each([
  ['POST', '/docs'],
  ['DELETE', '/docs/?a=b'],
  ['DELETE', '/openapi.json'],
  ['PUT', '/docs/swagger-ui.css'],
  ['PROPFIND', '/'],
])('%s %s on the documentation is method_not_allowed', async (method, path) => {
  const answer = await rest(node.base, method, path, {});
  expectRefused(answer, 405, 'method_not_allowed');
  expect(answer.headers.get('allow')).toBe('GET, HEAD, OPTIONS');
});

test('OPTIONS names the methods of a page, and an unknown page is route_not_found for every method', async () => {
  const asked = await fetch(`${node.base}/docs`, { method: 'OPTIONS' });
  expect([asked.status, asked.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS']);
  const others = ['/docs/../docs/package.json', '/docs/nothing', '/docs//', '/docs*x', '/:(', '/docs::', '/docsx'];
  others.push('/docs/package.json', '/docs/swagger-ui.css.map', '/docs/%2e%2e/package.json', '/docs/index.html');
  others.push('/docs//swagger-ui.css', '/docs/__proto__');
  for (const path of others)
    for (const method of ['GET', 'POST']) expectRefused(await rest(node.base, method, path), 404, 'route_not_found');
});
