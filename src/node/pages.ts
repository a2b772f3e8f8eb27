import type { FastifyInstance } from 'fastify';
import { docsAsset, docsContentSecurityPolicy, docsPaths } from '../rpc/openapi/docs-page.ts';
import { openApiBytes } from '../rpc/openapi/document.ts';

/** Serves the API's description and the page to read and try it, on the HTTP port. */
export function pages(app: FastifyInstance): void {
  app.get('/openapi.json', (_request, reply) =>
    reply
      .header('content-type', 'application/json; charset=utf-8')
      .header('access-control-allow-origin', '*')
      .send(openApiBytes()),
  );
  app.get('/', (_request, reply) => reply.redirect('/docs'));
  for (const path of docsPaths()) {
    app.get(path, (_request, reply) => {
      const asset = docsAsset(path);
      if (asset === null) return reply.callNotFound();
      return reply
        .header('content-type', asset.contentType)
        .header('content-security-policy', docsContentSecurityPolicy)
        .header('x-content-type-options', 'nosniff')
        .header('cache-control', 'public, max-age=300')
        .send(asset.body);
    });
  }
}
