import type { Pages } from '../rpc/http/pages.ts';
import { type DocsAsset, docsAssets, docsContentSecurityPolicy } from '../rpc/openapi/docs-page.ts';
import { openApiBytes } from '../rpc/openapi/document.ts';

/** The API's description, and the page to read and try it, on the HTTP port. */
export const pages: Pages = new Map([
  ['/', () => ({ status: 302, headers: ['location', '/docs'], body: Buffer.alloc(0) })],
  [
    '/openapi.json',
    () => ({
      status: 200,
      headers: ['content-type', 'application/json; charset=utf-8', 'access-control-allow-origin', '*'],
      body: openApiBytes(),
    }),
  ],
  ...[...docsAssets].map(([path, asset]) => [path, () => docsAnswer(asset())] as const),
]);

function docsAnswer({ contentType, body }: DocsAsset) {
  const headers = [
    ...['content-type', contentType, 'content-security-policy', docsContentSecurityPolicy],
    ...['x-content-type-options', 'nosniff', 'cache-control', 'public, max-age=300'],
  ];
  return { status: 200, headers, body };
}
