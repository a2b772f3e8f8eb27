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
<link rel="stylesheet" href="/docs/page.css">
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
</head>
<body>
<details id="signing">
<summary>Sign calls in the browser</summary>
<p>Each call that takes a signature is signed with this key before it is sent. The key stays in the memory of this tab:
it is neither sent nor stored, and a reload forgets it. Authorize first, and enrol the key's public key for your actor.
Use a key of the sandbox.</p>
<label for="signing-key">Ed25519 private key, PEM (PKCS#8)</label>
<textarea id="signing-key" rows="3" spellcheck="false" autocomplete="off" autocapitalize="off"></textarea>
<button type="button" id="signing-use">Use this key</button>
<button type="button" id="signing-forget" hidden>Forget the key</button>
<output id="signing-status"></output>
</details>
<div id="swagger-ui"></div>
<noscript>The API is described in <a href="/openapi.json">/openapi.json</a>.</noscript>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

const STYLE = `#signing { max-width: 1420px; box-sizing: border-box; margin: 20px auto 0; padding: 0 20px; }
#signing { font: 14px/1.5 sans-serif; color: #3b4151; }
#signing summary { cursor: pointer; font-weight: bold; }
#signing textarea { display: block; width: 100%; box-sizing: border-box; margin: 4px 0 8px; font: 12px monospace; }
#signing output { display: block; min-height: 1.5em; margin-top: 4px; }
`;

const html = sharedBytes(Buffer.from(PAGE));
const style = sharedBytes(Buffer.from(STYLE));

/** The files of the documentation page by their paths. A file is read once, on its first request. */
export const docsAssets: ReadonlyMap<string, () => DocsAsset> = new Map([
  ['/docs', () => ({ contentType: 'text/html; charset=utf-8', body: html })],
  ['/docs/page.css', () => ({ contentType: 'text/css; charset=utf-8', body: style })],
  // Made of browser/start.ts and the domain's own rules by `npm run prepare`.
  ['/docs/start.js', fileAt(new URL('../../gen/docs-start.js', import.meta.url), 'text/javascript; charset=utf-8')],
  ['/docs/swagger-ui.css', packaged('swagger-ui.css', 'text/css; charset=utf-8')],
  ['/docs/swagger-ui-bundle.js', packaged('swagger-ui-bundle.js', 'text/javascript; charset=utf-8')],
  ['/docs/favicon-32x32.png', packaged('favicon-32x32.png', 'image/png')],
]);

/** Nothing else of swagger-ui-dist is served. */
function packaged(name: string, contentType: string): () => DocsAsset {
  return fileAt(createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`), contentType);
}

function fileAt(path: string | URL, contentType: string): () => DocsAsset {
  let body: Buffer | null = null;
  return () => {
    body ??= sharedBytes(readFileSync(path));
    return { contentType, body };
  };
}
