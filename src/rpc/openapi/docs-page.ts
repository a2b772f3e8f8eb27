import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { sharedBytes } from '../http/response.ts';

/** A file of the documentation page. */
interface DocsAsset {
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

const made: ReadonlyMap<string, DocsAsset> = new Map([
  ['/docs', { contentType: 'text/html; charset=utf-8', body: sharedBytes(Buffer.from(PAGE)) }],
  ['/docs/start.js', { contentType: 'text/javascript; charset=utf-8', body: sharedBytes(Buffer.from(START)) }],
]);

/** The files of swagger-ui-dist that the page needs. Nothing else of the package is served. */
const packaged: ReadonlyMap<string, string> = new Map([
  ['/docs/swagger-ui.css', 'text/css; charset=utf-8'],
  ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  ['/docs/favicon-32x32.png', 'image/png'],
]);

const read = new Map<string, DocsAsset>();

/**
 * Returns the file under a path of the documentation page (`/docs` and below), or null if there is none. A file is
 * read once, on its first request.
 */
export function docsAsset(path: string): DocsAsset | null {
  const trimmed = path === '/docs/' ? '/docs' : path;
  const own = made.get(trimmed) ?? read.get(trimmed);
  if (own) return own;
  const contentType = packaged.get(trimmed);
  if (contentType === undefined) return null;
  const file = join(packageFolder(), trimmed.slice('/docs/'.length));
  const asset = { contentType, body: sharedBytes(readFileSync(file)) };
  read.set(trimmed, asset);
  return asset;
}

/** Returns the paths of all files of the page. */
export function docsPaths(): readonly string[] {
  return [...made.keys(), ...packaged.keys()];
}

function packageFolder(): string {
  return dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
}
