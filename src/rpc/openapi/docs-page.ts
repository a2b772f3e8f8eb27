import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { sharedBytes } from '../http/response.ts';

export interface DocsAsset {
  readonly contentType: string;
  readonly body: Buffer;
}

/** The page may load scripts, styles and data from its own host only. Swagger UI draws its icons as data URLs. */
export const docsContentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Ledger Trust Service API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>The API is described in <a href="/openapi.json">/openapi.json</a>.</noscript>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

/** With validatorUrl null, Swagger UI does not send the document's address to a validator on the internet. */
const START = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'none',
  filter: true,
  validatorUrl: null,
  queryConfigEnabled: false,
  persistAuthorization: false,
});
`;

const html = sharedBytes(Buffer.from(PAGE));
const script = sharedBytes(Buffer.from(START));

/** The files of the documentation page by their paths. A file of a package is read once, on its first request. */
export const docsAssets: ReadonlyMap<string, () => DocsAsset> = new Map([
  ['/docs', () => ({ contentType: 'text/html; charset=utf-8', body: html })],
  ['/docs/start.js', () => ({ contentType: 'text/javascript; charset=utf-8', body: script })],
  ['/docs/swagger-ui.css', packaged('swagger-ui.css', 'text/css; charset=utf-8')],
  ['/docs/swagger-ui-bundle.js', packaged('swagger-ui-bundle.js', 'text/javascript; charset=utf-8')],
  ['/docs/favicon-32x32.png', packaged('favicon-32x32.png', 'image/png')],
]);

/** Nothing else of swagger-ui-dist is served. */
function packaged(name: string, contentType: string): () => DocsAsset {
  let body: Buffer | null = null;
  return () => {
    body ??= sharedBytes(readFileSync(createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`)));
    return { contentType, body };
  };
}
