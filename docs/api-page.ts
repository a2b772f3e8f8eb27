/** The API as one page of text, made from the OpenAPI document and so from the descriptors. */

/** Headings with links from elsewhere on the page. */
const transports = 'Transports';
const openPoints = 'What the contract leaves open';
const types = 'Types';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

interface Content {
  readonly schema?: Schema;
  readonly example?: unknown;
  /** The data of server-sent events, by name. */
  readonly 'x-events'?: Readonly<Record<string, Schema>>;
}

interface Body {
  readonly content?: Readonly<Record<string, Content>>;
  readonly description?: string;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly description: string;
  readonly security?: readonly object[];
  readonly parameters?: readonly {
    readonly $ref?: string;
    readonly name?: string;
    readonly in?: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly example?: unknown;
  }[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
}

/** A method that REST does not have. */
export interface RpcMethod {
  readonly name: string;
  readonly group: string;
  readonly description: string;
  /** Names of the schemas of a request and an answer. */
  readonly request: string;
  readonly answer: string;
  readonly requestExample: unknown;
  readonly answerExample: unknown;
}

/** What the page says of methods and the OpenAPI document does not. */
interface MoreOfApi {
  readonly rpcOnly: readonly RpcMethod[];
  readonly rpcSchemas: Readonly<Record<string, Schema>>;
  /** `/svc.v1.Service/Method` by operation, such as `GET /v1/ledgers`. */
  readonly rpcPaths: ReadonlyMap<string, string>;
  /** Operations whose event an actor with keys must sign. */
  readonly signed: ReadonlySet<string>;
}

export interface ApiDocument {
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  /** Requests that the service makes. */
  readonly webhooks: Readonly<Record<string, { readonly post: Operation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const columns = 120;

/** Prose in lines of at most 120 columns, with every code span whole. */
function wrapped(text: string): string {
  const lines: string[] = [];
  for (const word of text.match(/(?:`[^`]*`|[^\s`])+/g) ?? []) {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > columns) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines.join('\n');
}

const title = `# The API

Made from the descriptors in \`proto/svc/v1\` by \`node docs/make.ts\`; the same methods, to try out, are at \`/docs\`.
The examples are made from the descriptors too: each value has the right form, and belongs to no real object.
`;

const head = `## ${transports}

Every method below is served over REST as shown, and over gRPC, gRPC-Web and Connect as \`/svc.v1.<Service>/<Method>\`
with the same fields and, as metadata, the same headers. Errors of REST have one envelope,
\`{"error": {"code", "message", "request_id", "details"}}\`; those of gRPC, gRPC-Web and Connect are the protocol's own,
with the same code as \`reason\` of a \`google.rpc.ErrorInfo\` and request id and details in its \`metadata\`. What
Connect and gRPC-Web refuse before there is a call (an unknown method or media type) has the envelope.
\`MasterService/AppendEvents\`, a stream both ways for those who append all day, is on the gRPC port alone:
\`proto/svc/v1/masters.proto\` says how.

With \`Content-Type: application/json\` Connect speaks the JSON of protobuf, which is not that of REST: names are in
camel case (the names below are taken in requests too), \`seq\` and other 64-bit integers are strings, \`payload\`,
\`permissions\`, \`metadata\` and what else has a shape of its own are strings of JSON text, and fields that are null
over REST are left out.

<!-- run -->
\`\`\`sh
curl -s "$BASE/svc.v1.MasterService/AppendEvent" -H "Authorization: Bearer $BUYER_API_KEY" -H 'Content-Type: application/json' -d @- <<JSON
{ "uuid": "$MASTER", "eventType": "GOODS_COUNTED", "payload": "{\\"pallets\\": 4}" }
JSON
\`\`\`

It answers with \`"status":"recorded"\` and, behind the walk by curl of the README, whose BASE, BUYER_API_KEY and MASTER
these are, with \`"seq":"4"\`.

## ${openPoints}

- An idempotency key is compared by what the call means: white space, the order of members and the transport make no
  difference. A first call that is refused (4xx) frees its key; one that fails (5xx) keeps it, with what it was for. Two
  on one request are \`invalid_argument\`; over gRPC they come joined by a comma, and are one.
- A call that revokes a signing key and fails (5xx) may have begun the key's end: nothing more can be signed with it
  then, and it is shown as \`ACTIVE\`, without \`revoked_at\`, until the call is made again.
- An event's id is a UUIDv7 whose time is its \`created_at\`.
- A ledger, organization or master has at most 1,000 delegates at a time; a grant that has run out is none of them. It
  can still be revoked, and is named as replaced by a new grant, while there is room for it within that number: those
  that ran out first are forgotten first, and to revoke them is then \`404\`. Granting to an actor that holds a grant at
  that scope replaces it.
- \`permissions\` have at most 4 KiB in canonical form (\`payload_too_large\`), and a time of a request has at most nine
  digits behind the point (\`invalid_argument\`). Grants that were taken before there were these bounds hold on, and are
  read, proved and verified as they are; a new grant to the same actor replaces one. An event of more than 8 MiB is read
  over REST: gRPC does not send it.
- How far lists look: those of the grants that hold, and snapshots, look through the newest 101,000 grants ever made at
  that scope; where that is not enough to be sure that none is left out, they are refused (\`invalid_argument\`) and the
  proof shows all of them, page by page. A page of \`GET /v1/ledgers\`, of \`GET /v1/entities\` by several filters, or
  of \`GET /v1/traceledger/master\` by a filter, for which more than 20,000 would have to be looked through is refused
  alike. \`from\` and \`to\` cost nothing there: they bound what is looked through. A delegate of masters alone sees, in
  the lists and segment of a ledger, those among the newest 10,000 masters of that ledger that it ever had a grant of;
  older ones it reads by their own ids, and a ledger where all that it still holds are older is \`404\` to it, and not
  in its list of ledgers.
- Cursors of the lists of ledgers and of masters: \`next_cursor\` goes on behind the last entry of a page, so that each
  entry comes once, however many are added in front of it meanwhile. It is there as long as more may follow, on pages by
  \`offset\` too; the page after it may be empty. \`cursor\` goes with the same \`order\`, with the same filters, and
  without \`offset\`. A page after a cursor is never refused for what it would look through: it ends there, with what it
  found (\`count\` may be 0) and a \`next_cursor\`. The refusal of a page by \`offset\` names in \`details.next_cursor\`
  the cursor at which that page begins. A cursor of the list of masters is refused once its caller has gained or lost
  the whole ledger.
- In the lists of ledgers and masters all entries show what they are, those from before this version too: it was
  stored with each of them. \`business_ref\` or \`created_at\` of a master is null if its stored record has lost it.
- A query parameter that a call does not have is ignored, and named in the answer's header \`X-Ignored-Parameters\`:
  percent-encoded, separated by commas, refusals included, \`...\` for those that do not fit into 2 KiB. With
  \`X-Strict: 1\` it is refused (\`invalid_argument\`): \`details.field\` names it, and \`details.nearest\` the known
  name that is nearest. Calls with a body take no parameters in their query. Over gRPC, gRPC-Web and Connect a field
  cannot be misspelt in this way: protobuf has numbers, and unknown fields of Connect's JSON are always refused.
- \`POST /v1/ledgers\` also takes both actor ids without a URI, if one of them is the caller's. The schema does not say
  so: name the other side alone.
- A ledger grant of role OWNER with \`permissions.access\` \`read\` reads, and neither grants nor revokes.
- Where calls have a rate limit, a read counts as one more call for each 500 events, lines, records or keys that it
  looks through, each 50 signatures that it verifies, and each 1 MiB that it reads; parts do not count. What is counted
  is taken after the read, so that the next call may be \`rate_limited\`: \`Retry-After\` says when to go on. Small pages
  cost one call.
- There, a request counts as one more call for each 50 parts. Parts are JSON values (members, items of lists), escapes,
  and stretches of 64 bytes beyond the first 16 KiB. A number with a fraction or an exponent counts as five parts.
  Texts count as if they were JSON: a comma in one is a part, and a time with milliseconds counts as a fraction.
  Events seldom have 50. What is counted is taken before the request is read. Events of AppendEvents count in the same
  way, and one that is refused for good counts as a call. What is counted in these ways comes from one bucket of the
  actor, whatever API keys it uses. An event that the rate does not allow is answered \`rate_limited\` with
  \`resume_from\`. The next one is taken once the rate allows it, a second later at the latest. Small appends go on.
- A request may have 132,096 JSON values, more than the largest payload holds, and without a credential 64 KiB and
  28,000 parts; with more it is \`payload_too_large\`. Over gRPC, Connect and gRPC-Web it may have 512 fields, which is
  far more than any request has.
- The access history has one event for each ledger that a call names. A stream of AppendEvents leaves its own at its
  end, with its status. If it names more than 256 ledgers, it leaves those of each 256 as it goes, with the status 200,
  and another one for a ledger that it names again later.
- Of the lists and event pages of one actor a few are read at once, four by default; the others wait. A read that is
  still waiting or under way when its caller hangs up, or at its deadline, ends: \`unavailable\`. Where too many wait it
  is \`overloaded\`.
- Where an entity must sign, its bare header is answered \`signature_required\` before its body is read, and a
  retry with its Idempotency-Key needs a signature that verifies.
- A page of a segment (what a master's delegate sees of a ledger) and every filtered list are checked for what they
  hold, not for gaps.
- For gRPC and Connect, what an ENTITY_REQUEST signs is method \`POST\`, path \`/svc.v1.<Service>/<Method>\` and the
  hash of the serialized request message.
- What gRPC refuses before the service has a call carries ErrorInfo and \`x-request-id\` too, beside the status that
  gRPC's protocol has for it, which is not always the one of the code: an unknown method (UNIMPLEMENTED,
  \`route_not_found\`); an unknown compression (UNIMPLEMENTED, \`unsupported_media_type\`); no message, or two where one
  is due (UNIMPLEMENTED, \`invalid_argument\`); a message that does not unpack, and a \`grpc-timeout\` that is none
  (INTERNAL, \`invalid_argument\`); a message of more than 1,088 KiB, packed or unpacked (RESOURCE_EXHAUSTED,
  \`payload_too_large\`, as from 1 MiB on). Nothing of the refused call was written. On AppendEvents such a message, or
  such a \`grpc-timeout\`, ends the stream, with the status of the code (INVALID_ARGUMENT, not INTERNAL, for
  \`invalid_argument\`), once the events that were taken before it are answered; those that have no outcome then were
  not written, those sent just before it among them.
- Two answers of the gRPC port carry no ErrorInfo: DEADLINE_EXCEEDED, where it says that the caller's own time ran out
  and the outcome is unknown (the service's own \`outcome_unknown\` has it), and HTTP's 415 for a media type that is not
  gRPC's, since who sends that reads no gRPC.
- With an API key, \`X-ACTOR-TYPE\` (\`human\`, \`service\`, \`external\` or \`device\`; \`service\` if left out) is the
  \`actor_type\` of the event that a call writes: of masters made, events appended, masters closed, grants and
  revocations. Openings and closings of ledgers are the service's own events, of type \`service\` no matter which actor
  asked.
- A \`Connect-Timeout-Ms\` that is not 1 to 10 digits, and a \`grpc-timeout\` over gRPC-Web that is not 1 to 8 digits
  and a unit, is \`invalid_argument\`, in the envelope as over REST.
- In development mode a node makes the authority's key itself: the trust anchor leaves \`public_key\` out, and the seals
  verify under the key in \`keys\`.
`;

const differencesHeading = 'What the document does not say';

const differences = `
## ${differencesHeading}

\`/openapi.json\` describes the REST calls. Schemathesis (\`npm run test:schemathesis\`) asks a node whether it does
what the document says, and finds these five differences alone:

1. A snapshot and a proof of delegation take exactly one of \`organization_id\`, \`ledger_id\` and \`master_id\`, and a
   proof of inclusion exactly one of \`event_id\` and \`seq\` or \`master_seq\`. OpenAPI cannot say that of query
   parameters: none or two are \`invalid_argument\`. So is a \`from\` above \`to\`, or a size above the head.
2. A \`cursor\` has the form in the document, and is also a \`next_cursor\` of the same list; another one is
   \`invalid_argument\`.
3. \`X-Delivery-Chain\` is JSON in a header, and a \`public_key\` is a point of prime order: text of the right form can
   still be \`invalid_json\`, \`invalid_argument\` or \`invalid_public_key\`. So can a time that names no day of the
   calendar, or has more than nine digits behind the point.
4. Objects of callers (\`payload\`, \`metadata\`, \`permissions\`) are I-JSON: a number that canonical JSON would change
   is \`unsafe_number\`, and \`reserved_field\`, \`caused_by_hash\` and \`access\` have rules of their own.
5. Two answers are no faults of the service: \`501 namespace_reserved\` of the resolver, and
   \`422 idempotency_key_reused\` for a good request under a key that was used for another one.
`;

/** Markdown. */
export function apiPage(document: ApiDocument, more: MoreOfApi): string {
  return new ApiPage(document, more).text();
}

interface Entry {
  readonly group: string;
  readonly heading: string;
  /** Names the method in the table of contents. */
  readonly name: string;
  readonly lines: readonly string[];
}

class ApiPage {
  readonly #document: ApiDocument;
  readonly #more: MoreOfApi;
  readonly #schemas: Readonly<Record<string, Schema>>;
  /** Schemas whose fields stand with the one method that uses them. All others are in the section of types. */
  readonly #inlined: ReadonlySet<string>;

  constructor(document: ApiDocument, more: MoreOfApi) {
    this.#document = document;
    this.#more = more;
    this.#schemas = { ...more.rpcSchemas, ...document.components.schemas };
    this.#inlined = this.#usedOnce();
  }

  text(): string {
    const entries = [
      ...this.#operations().map(([id, operation]) => this.#restEntry(id, operation)),
      ...this.#more.rpcOnly.map((method) => this.#rpcEntry(method)),
      ...this.#webhooks().map((operation) => this.#webhookEntry(operation)),
    ];
    const sections = this.#document.tags.map(({ name, description }) => {
      const own = entries.filter(({ group }) => group === name);
      const texts = own.map(({ heading, lines }) => [`### ${heading}`, '', ...lines].join('\n'));
      return { name, own, text: [`## ${name}`, '', wrapped(description ?? ''), '', ...texts].join('\n') };
    });
    const contents = [
      ...[transports, openPoints, differencesHeading].map((heading) => `- ${linkTo(heading)}`),
      ...sections.flatMap(({ name, own }) => [
        `- ${linkTo(name)}`,
        ...own.map(({ name: method, heading }) => `  - ${linkTo(heading, method)}: \`${heading}\``),
      ]),
      `- ${linkTo(types)}`,
    ];
    const texts = [title, ...contents, '', head, differences, ...sections.map(({ text }) => text), this.#typesText()];
    return `${texts.join('\n').trimEnd()}\n`;
  }

  #operations(): (readonly [id: string, Operation])[] {
    return Object.entries(this.#document.paths).flatMap(([path, verbs]) =>
      Object.entries(verbs).map(([verb, operation]) => [`${verb.toUpperCase()} ${path}`, operation] as const),
    );
  }

  #webhooks(): Operation[] {
    return Object.values(this.#document.webhooks).map(({ post }) => post);
  }

  #webhookEntry({ operationId: name, tags: [group = ''], description, requestBody }: Operation): Entry {
    const body = jsonOf(requestBody);
    const lines = [
      ...['A request that the service makes to a receiver.', '', wrapped(description), ''],
      ...table('request', this.#bodyRows(body?.schema)),
      ...fenced('json', JSON.stringify(body?.example, null, 2)),
    ];
    return { group, heading: name, name, lines };
  }

  #restEntry(id: string, operation: Operation): Entry {
    const { operationId: name, description } = operation;
    const [group = ''] = operation.tags;
    const rpcPath = this.#more.rpcPaths.get(id) ?? '';
    const signed = this.#more.signed.has(id) ? ' · signed' : '';
    const facts = `\`${name}\` · ${auth(operation)}${signed} · gRPC \`${rpcPath}\``;
    const main = this.#operations().find(([other]) => this.#more.rpcPaths.get(other) === rpcPath)?.[0];
    if (main !== undefined && main !== id)
      return { group, heading: id, name, lines: [facts, '', `The same as ${linkTo(main)}.`, ''] };
    const lines = [facts, '', wrapped(description), ''];
    const parameters = (operation.parameters ?? [])
      .filter((parameter) => parameter.name !== undefined && parameter.in !== 'header')
      .map((parameter) => {
        const place = `${parameter.in ?? ''}${parameter.required === true ? '' : ', optional'}`;
        return row(parameter.name ?? '', place, parameter.description);
      });
    const request = jsonOf(operation.requestBody);
    const answer = jsonOf(operation.responses['200']);
    lines.push(...table('request', [...parameters, ...this.#bodyRows(request?.schema)]));
    lines.push(...fenced('http', requestText(id, operation, this.#more.signed.has(id))));
    lines.push(...table('answer', this.#bodyRows(answer?.schema)));
    if (answer !== undefined) lines.push(...fenced('json', JSON.stringify(answer.example, null, 2)));
    const live = operation.responses['200']?.content?.['text/event-stream'];
    if (live?.['x-events'] !== undefined) {
      lines.push(
        'Answers server-sent events, whose data are these types, or 204 if there is nothing more to follow.',
        '',
      );
      const rows = Object.entries(live['x-events']).map(([event, schema]) =>
        row(event, this.#typeName(schema), this.#schemas[refName(schema) ?? '']?.description),
      );
      lines.push(...table('event', rows), ...fenced('text', String(live.example).trimEnd()));
    } else if (answer === undefined && operation.responses['204'] !== undefined) lines.push('Answers 204.', '');
    return { group, heading: id, name, lines };
  }

  #rpcEntry({ name, group, description, request, answer, requestExample, answerExample }: RpcMethod): Entry {
    const ref = (schema: string) => this.#bodyRows({ $ref: `#/${schema}` });
    const lines = [
      ...['gRPC alone.', '', wrapped(description), ''],
      ...table('request', ref(request)),
      ...fenced('json', JSON.stringify(requestExample, null, 2)),
      ...table('answer', ref(answer)),
      ...fenced('json', JSON.stringify(answerExample, null, 2)),
    ];
    return { group, heading: name, name, lines };
  }

  /** The fields of a body, or one row that names its type if other methods have it too. */
  #bodyRows(schema: Schema | undefined): string[] {
    if (schema === undefined) return [];
    const name = refName(schema);
    if (name === undefined) return [row('', this.#typeName(schema), schema.description)];
    if (!this.#inlined.has(name)) return [row('', this.#typeName(schema), this.#schemas[name]?.description)];
    return this.#fieldRows(name);
  }

  #fieldRows(name: string): string[] {
    const { properties = {}, required = [] } = this.#schemas[name] ?? {};
    return Object.entries(properties).map(([field, schema]) => {
      const type = `${this.#typeName(schema)}${required.includes(field) ? '' : ', optional'}`;
      return row(field, type, schema.description ?? this.#schemas[refName(schema) ?? '']?.description);
    });
  }

  #typesText(): string {
    const names = Object.keys(this.#schemas).filter((name) => name !== 'Error' && !this.#inlined.has(name));
    const texts = names.sort().map((name) => {
      const rows = this.#fieldRows(name);
      return [`### ${name}`, '', wrapped(this.#schemas[name]?.description ?? ''), '', ...table('field', rows)].join(
        '\n',
      );
    });
    return [`## ${types}`, '', 'Types that fields have, or several methods.', '', ...texts].join('\n');
  }

  #usedOnce(): ReadonlySet<string> {
    const roots = [
      ...this.#operations().flatMap(([, operation]) => [
        jsonOf(operation.requestBody)?.schema,
        jsonOf(operation.responses['200'])?.schema,
      ]),
      ...this.#webhooks().map(({ requestBody }) => jsonOf(requestBody)?.schema),
      ...this.#more.rpcOnly.flatMap(({ request, answer }) => [{ $ref: `#/${request}` }, { $ref: `#/${answer}` }]),
    ].flatMap((schema) => (schema === undefined ? [] : (refName(schema) ?? [])));
    const named = new Set(
      Object.values(this.#schemas).flatMap((schema) => Object.values(schema.properties ?? {}).flatMap(refsOf)),
    );
    return new Set(roots.filter((name) => !named.has(name)));
  }

  #typeName(schema: Schema): string {
    const name = refName(schema);
    if (name !== undefined) return this.#inlined.has(name) ? name : linkTo(name);
    const choices = schema.anyOf ?? schema.oneOf;
    if (choices !== undefined) return choices.map((choice) => this.#typeName(choice)).join(' or ');
    if (schema.items !== undefined) return `array of ${this.#typeName(schema.items)}`;
    return typeof schema.type === 'string' ? schema.type : (schema.type ?? ['object']).join(' or ');
  }
}

function jsonOf(body: Body | undefined): { readonly schema?: Schema; readonly example?: unknown } | undefined {
  return body?.content?.['application/json'];
}

function refName(schema: Schema): string | undefined {
  return schema.$ref?.split('/').at(-1);
}

/** The names of the schemas that a field refers to. */
function refsOf(schema: Schema): string[] {
  const inner = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.items ? [schema.items] : [])];
  return [refName(schema) ?? [], ...inner.map(refsOf)].flat();
}

/** The request as it goes over HTTP, without the headers that every client sets. */
function requestText(id: string, operation: Operation, isSigned: boolean): string {
  const parameters = operation.parameters ?? [];
  const exampleOf = (name: string | undefined) =>
    encodeURIComponent(String(parameters.find((parameter) => parameter.name === name)?.example ?? ''));
  const query = parameters.filter((parameter) => parameter.in === 'query' && parameter.example !== undefined);
  const pairs = query.map(({ name }) => `${name}=${exampleOf(name)}`).join('&');
  const line = id.replaceAll(/\{(\w+)\}/g, (_, name: string) => exampleOf(name)) + (pairs === '' ? '' : `?${pairs}`);
  const body = jsonOf(operation.requestBody);
  return [
    line,
    ...credentialLines(operation),
    ...(isSigned ? ['X-Signing-Key-ID: <name of the key>', 'X-Actor-Sig: <signature>'] : []),
    ...(body === undefined ? [] : ['Content-Type: application/json', '', JSON.stringify(body.example, null, 2)]),
  ].join('\n');
}

function credentialLines(operation: Operation): string[] {
  const first = Object.keys(operation.security?.[0] ?? {});
  if (first.includes('ApiKey')) return ['Authorization: Bearer <API key>'];
  return first.length === 0 ? [] : ['X-ACTOR-ID: <actor of the entity>', 'X-ACTOR-TYPE: device'];
}

function auth(operation: Operation): string {
  const schemes = (operation.security ?? []).flatMap((scheme) => Object.keys(scheme));
  if (schemes.length === 0) return 'no credential';
  const ways = [schemes.includes('ApiKey') ? 'API key' : '', schemes.includes('EntityActorId') ? 'entity headers' : ''];
  return ways.filter((way) => way !== '').join(' or ');
}

function table(heading: string, rows: readonly string[]): string[] {
  return rows.length === 0 ? [] : [`| ${heading} | | |`, '|---|---|---|', ...rows, ''];
}

function row(name: string, type: string, text: string | undefined): string {
  return `| ${name === '' ? '' : `\`${name}\``} | ${type} | ${cell(text)} |`;
}

function fenced(language: string, text: string): string[] {
  return [`\`\`\`${language}`, text, '```', ''];
}

/** A link to a heading of this page, by the rule of GitHub. */
function linkTo(heading: string, text = heading): string {
  const slug = heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-');
  return `[${text}](#${slug})`;
}

function cell(text: string | undefined): string {
  return (text ?? '').replaceAll('|', '\\|').replaceAll('\n', ' ');
}
