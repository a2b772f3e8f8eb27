import { eventSigningInput } from '../../../client/signing/signed-calls.ts';
import type { SigningInput } from '../../../client/signing/signing.ts';
import { ledgerFacts } from '../../../domain/event/facts.ts';
import { entityRequestForm } from '../../../domain/keys/entity-request.ts';
import type { SigningKey } from './signing-key.ts';

// Runs in browsers, so it takes nothing of Node.

/** A request as Swagger UI is about to send it. */
export interface PageRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

type Headers = Readonly<Record<string, string>>;
type Fetch = (url: string, init: { readonly headers: Headers }) => Promise<Response>;

/** What the signer reads of the OpenAPI document. */
export interface Paths {
  readonly [template: string]: { readonly [verb: string]: OperationFacts };
}

interface OperationFacts {
  readonly operationId: string;
  readonly security: readonly object[];
  /** The signature of a call is that of the event that it writes. */
  readonly 'x-signed'?: boolean;
}

interface FoundOperation extends OperationFacts {
  readonly pathFields: Readonly<Record<string, string>>;
}

/** The caller as the page names it. */
interface Identity {
  readonly headers: Headers;
  /** The actor of an entity that is named by headers; null with an API key. */
  readonly entity: string | null;
}

/** Signs requests as the client library does, and looks up what signing needs to know over REST. */
export class RequestSigner {
  readonly #origin: string;
  readonly #paths: Paths;
  readonly #key: SigningKey;
  readonly #fetch: Fetch;
  readonly #now: () => number;

  constructor(origin: string, paths: Paths, key: SigningKey, fetch: Fetch, now: () => number) {
    this.#origin = origin;
    this.#paths = paths;
    this.#key = key;
    this.#fetch = fetch;
    this.#now = now;
  }

  /**
   * Returns the headers that sign the request; none if it takes no signature. Rejects if what signing needs cannot be
   * read, or if the key is not one of the caller.
   */
  async sign(request: PageRequest): Promise<Headers> {
    const url = new URL(request.url, this.#origin);
    const operation = this.#find(request.method, url.pathname);
    const identity = identityOf(request.headers);
    if (operation === null || operation.security.length === 0 || identity === null) return {};
    if (identity.entity !== null && operation['x-signed'] !== true) return this.#signRequest(request, url, identity);
    const name = operation.operationId.charAt(0).toLowerCase() + operation.operationId.slice(1);
    const fields = { ...operation.pathFields, ...(JSON.parse(bodyText(request) || '{}') as object) };
    const input = await eventSigningInput(name, inCamelCase(fields), this.#facts(identity));
    return input === null ? {} : this.#signed(input, await this.#caller(identity));
  }

  #find(method: string, path: string): FoundOperation | null {
    for (const [template, verbs] of Object.entries(this.#paths)) {
      const operation = verbs[method.toLowerCase()];
      const literals = template.replaceAll(/[.]/g, '\\$&').replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)');
      const match = operation === undefined ? null : new RegExp(`^${literals}/?$`).exec(path);
      if (operation === undefined || match === null) continue;
      const pathFields = Object.entries(match.groups ?? {}).map(([name, text]) => [name, decodeURIComponent(text)]);
      return { ...operation, pathFields: Object.fromEntries(pathFields) };
    }
    return null;
  }

  #facts(identity: Identity): Parameters<typeof eventSigningInput>[2] {
    const read = (path: string) => this.#read(path, identity);
    return {
      ledger: async (id) => {
        const { events } = (await read(`/v1/ledgers/${id}/events?limit=1`)) as { events: readonly Genesis[] };
        const [genesis] = events;
        if (genesis?.event_type !== 'GENESIS') throw new Error(`The start of ledger ${id} cannot be read.`);
        const { payload, created_at: createdAt, hash } = genesis;
        return ledgerFacts({ ledgerId: id, payload: JSON.stringify(payload), createdAt, hash });
      },
      master: async (id) => {
        const master = (await read(`/v1/traceledger/master/${id}`)) as MasterAnswer;
        return { masterId: id, ledgerId: master.ledger_id, businessRef: master.business_ref, scope: master.scope };
      },
      organizationLedger: async (id) => textAt(await read(`/v1/organizations/${id}`), 'frl_ledger_id'),
      rootLedger: async (id) => textAt(await read(`/v1/entities/root-ledger/${id}`), 'ledger_id'),
      caller: () => this.#caller(identity),
      noteMaster: () => {},
    };
  }

  async #caller(identity: Identity): Promise<string> {
    return identity.entity ?? textAt(await this.#read('/v1/developer/me', identity), 'actor_id');
  }

  async #read(path: string, identity: Identity): Promise<object> {
    const url = new URL(path, this.#origin);
    const request = { url: url.href, method: 'GET', headers: identity.headers };
    const signature = identity.entity === null ? {} : await this.#signRequest(request, url, identity);
    const answer = await this.#fetch(url.href, { headers: { ...identity.headers, ...signature } });
    if (!answer.ok) throw new Error(`GET ${path} is answered with ${answer.status}.`);
    return (await answer.json()) as object;
  }

  /** Signs the request as a whole (ENTITY_REQUEST). */
  async #signRequest(request: PageRequest, url: URL, identity: Identity): Promise<Headers> {
    const timestamp = new Date(this.#now()).toISOString();
    const bodyHash = hexOf(await sha256(new TextEncoder().encode(bodyText(request))));
    const path = url.pathname + url.search;
    const canonical = entityRequestForm({ method: request.method.toUpperCase(), path, bodyHash, timestamp });
    const ledgerId = identity.entity ?? '';
    const headers = await this.#signed({ eventType: 'ENTITY_REQUEST', ledgerId, canonical }, ledgerId);
    return { ...headers, 'X-Timestamp': timestamp };
  }

  async #signed({ eventType, ledgerId, canonical }: SigningInput, actorId: string): Promise<Headers> {
    const kid = await this.#kidOf(actorId);
    const digest = await sha256(new TextEncoder().encode(`${eventType}\0${ledgerId}\0${canonical}`));
    return { 'X-Signing-Key-ID': kid, 'X-Actor-Sig': await this.#key.sign(digest) };
  }

  /** The name of the key among the actor's, which everyone may read. */
  async #kidOf(actorId: string): Promise<string> {
    const answer = await this.#fetch(new URL(`/v1/actors/${actorId}/keys`, this.#origin).href, { headers: {} });
    const keys = answer.ok ? ((await answer.json()) as readonly { kid: string; public_key: string }[]) : [];
    const own = keys.find(({ public_key: publicKey }) => publicKey === this.#key.publicKey);
    if (own === undefined) throw new Error(`The key is not enrolled for actor ${actorId}.`);
    return own.kid;
  }
}

interface Genesis {
  readonly event_type: string;
  readonly payload: object;
  readonly created_at: string;
  readonly hash: string;
}

interface MasterAnswer {
  readonly ledger_id: string;
  readonly business_ref: string;
  readonly scope: string;
}

/** Header names in any case. With an API key, the headers of an entity do not count. */
function identityOf(headers: Headers): Identity | null {
  const given = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const authorization = given.get('authorization');
  if (authorization !== undefined) return { headers: { Authorization: authorization }, entity: null };
  const entity = given.get('x-actor-id');
  const type = given.get('x-actor-type') ?? '';
  return entity === undefined ? null : { headers: { 'X-ACTOR-ID': entity, 'X-ACTOR-TYPE': type }, entity };
}

function bodyText({ body }: PageRequest): string {
  return typeof body === 'string' ? body : '';
}

function inCamelCase(fields: object): object {
  const camel = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [camel(name), value]));
}

function textAt(answer: object, name: string): string {
  const value: unknown = Reflect.get(answer, name);
  if (typeof value !== 'string') throw new Error(`The answer has no ${name}.`);
  return value;
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
