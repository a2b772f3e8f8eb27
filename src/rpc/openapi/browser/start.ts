import { type PageRequest, type Paths, RequestSigner } from './request-signer.ts';
import { type SigningKey, signingKey } from './signing-key.ts';

// The script of /docs. It starts Swagger UI and signs its requests with a key that stays in this script's memory.

interface SwaggerUi {
  readonly specSelectors: { specJson(): { toJS(): { readonly paths?: Paths } } };
  /** Opens the operation of a deep link and scrolls to it. */
  readonly layoutActions: { parseDeepLinkHash(hash: string): void };
}

declare const SwaggerUIBundle: (options: object) => SwaggerUi;

let key: SigningKey | null = null;

/** Headers whose values the caller has filled in itself are kept. */
async function withSignature(request: PageRequest & { readonly loadSpec?: boolean }): Promise<PageRequest> {
  const names = Object.keys(request.headers ?? {}).map((name) => name.toLowerCase());
  if (key === null || request.loadSpec === true || names.includes('x-actor-sig')) return request;
  try {
    const { paths = {} } = ui.specSelectors.specJson().toJS();
    const signer = new RequestSigner(location.origin, paths, key, (url, init) => fetch(url, init), Date.now);
    const signature = await signer.sign(request);
    say(Object.keys(signature).length > 0 ? 'The last call was signed.' : 'The last call takes no signature.');
    return { ...request, headers: { ...request.headers, ...signature } };
  } catch (error) {
    say(`The last call was sent without a signature: ${messageOf(error)}`);
    return request;
  }
}

// With validatorUrl null, Swagger UI does not send the document's address to a validator on the internet.
const ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'none',
  filter: true,
  validatorUrl: null,
  queryConfigEnabled: false,
  persistAuthorization: false,
  requestInterceptor: withSignature,
});

// Swagger UI reads the deep link of the first load only.
addEventListener('hashchange', () => ui.layoutActions.parseDeepLinkHash(location.hash));

const pem = elementOf('signing-key', HTMLTextAreaElement);
const forget = elementOf('signing-forget', HTMLButtonElement);
const status = elementOf('signing-status', HTMLOutputElement);

elementOf('signing-use', HTMLButtonElement).addEventListener('click', async () => {
  try {
    key = await signingKey(pem.value);
    pem.value = '';
    forget.hidden = false;
    say(`Calls are signed with the private key of ${key.publicKey}.`);
  } catch (error) {
    say(messageOf(error));
  }
});

forget.addEventListener('click', () => {
  key = null;
  forget.hidden = true;
  say('The key is forgotten.');
});

function say(text: string): void {
  status.textContent = text;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function elementOf<T extends HTMLElement>(id: string, type: new () => T): T {
  const element = document.getElementById(id);
  if (element instanceof type) return element;
  throw new TypeError(`The page has no ${id}`);
}
