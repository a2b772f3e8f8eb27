/** The API as one page of text, made from the OpenAPI document and so from the descriptors. */

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

interface Body {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
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
    readonly description?: string;
  }[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Body>>;
}

export interface ApiDocument {
  readonly tags: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const head = `# The API

Made from the descriptors in \`proto/svc/v1\` by \`node docs/make.ts\`; the same methods, to try out, are at \`/docs\`.

Every method below is served over REST as shown, and over gRPC, gRPC-Web and Connect as \`/svc.v1.<Service>/<Method>\` with the same fields and,
as metadata, the same headers. Errors of REST have one envelope, \`{"error": {"code", "message", "request_id", "details"}}\`; those of gRPC, gRPC-Web and
Connect are the protocol's own, with the same code as \`reason\` of a \`google.rpc.ErrorInfo\` and request id and details in its \`metadata\`. What Connect and
gRPC-Web refuse before there is a call (an unknown method or media type) has the envelope.
\`MasterService/AppendEvents\`, a stream both ways for those who append all day, is on the gRPC port alone: \`proto/svc/v1/masters.proto\` says how.

With \`Content-Type: application/json\` Connect speaks the JSON of protobuf, which is not that of REST: names are in camel case (the names below are
taken in requests too), \`seq\` and other 64-bit integers are strings, \`payload\`, \`permissions\`, \`metadata\` and what else has a shape of its own are strings of
JSON text, and fields that are null over REST are left out.

<!-- run -->
\`\`\`sh
curl -s "$BASE/svc.v1.MasterService/AppendEvent" -H "Authorization: Bearer $BUYER_API_KEY" -H 'Content-Type: application/json' -d @- <<JSON
{ "uuid": "$MASTER", "eventType": "GOODS_COUNTED", "payload": "{\\"pallets\\": 4}" }
JSON
\`\`\`

It answers with \`"status":"recorded"\` and, behind the walk of the README, whose BASE, BUYER_API_KEY and MASTER these are, with \`"seq":"6"\`.

Where the contract leaves something open, this is how it is here:

- An idempotency key is compared by what the call means: white space, the order of members and the transport make no difference. A first call
  that is refused (4xx) frees its key; one that fails (5xx) keeps it, with what it was for.
  Two on one request are \`invalid_argument\`; over gRPC they come joined by a comma, and are one.
- A call that revokes a signing key and fails (5xx) may have begun the key's end: nothing more can be signed with it then, and it is shown
  as \`ACTIVE\`, without \`revoked_at\`, until the call is made again.
- An event's id is a UUIDv7 whose time is its \`created_at\`.
- A ledger, organization or master has at most 1,000 delegates at a time; a grant that has run out is none of them. It can still be revoked,
  and is named as replaced by a new grant, while there is room for it within that number: those that ran out first are forgotten first, and
  to revoke them is then \`404\`. Granting to an actor that holds a grant at that scope replaces it.
- How far lists look: those of the grants that hold, and snapshots, look through the newest 101,000 grants ever made at that
  scope; where that is not enough to be sure that none is left out, they are refused (\`invalid_argument\`) and the proof shows all of them, page
  by page. A page of \`GET /v1/ledgers\`, or of \`GET /v1/entities\` by several filters, for which more than 20,000 would have to be looked through is refused alike. A delegate of
  masters alone sees, in the lists and segment of a ledger, those among the newest 10,000 masters of that ledger that it ever had a grant of;
  older ones it reads by their own ids, and a ledger where all that it still holds are older is \`404\` to it.
- A ledger grant of role OWNER with \`permissions.access\` \`read\` reads, and neither grants nor revokes.
- Where calls have a rate limit, a read counts as one more call for each 500 events, lines or records that it looks through, each 50 signatures that it
  verifies, and each 1 MiB that it reads; parts do not count. What is counted is taken after the read, so that the next call may be \`rate_limited\`:
  \`Retry-After\` says when to go on. Small pages cost one call.
- Of the lists and event pages of one actor a few are read at once, four by default; the others wait. A read that is still waiting or under way when its caller
  hangs up, or at its deadline, ends: \`unavailable\`. Where too many wait it is \`overloaded\`.
- Where an entity must sign, its bare header is answered \`signature_required\` before anything is looked up, and a retry with its
  Idempotency-Key needs a signature that verifies.
- A page of a segment (what a master's delegate sees of a ledger) and every filtered list are checked for what they hold, not for gaps.
- For gRPC and Connect, what an ENTITY_REQUEST signs is method \`POST\`, path \`/svc.v1.<Service>/<Method>\` and the hash of the serialized
  request message.
- What gRPC refuses before the service has a call carries ErrorInfo and \`x-request-id\` too, beside the status that gRPC's protocol has for it, which is
  not always the one of the code: an unknown method (UNIMPLEMENTED, \`route_not_found\`); an unknown compression (UNIMPLEMENTED,
  \`unsupported_media_type\`); no message, or two where one is due (UNIMPLEMENTED, \`invalid_argument\`); a message that does not unpack, and a
  \`grpc-timeout\` that is none (INTERNAL, \`invalid_argument\`); a message of more than 1,088 KiB, packed or unpacked (RESOURCE_EXHAUSTED,
  \`payload_too_large\`, as from 1 MiB on). Nothing of the refused call was written. On AppendEvents such a message, or such a \`grpc-timeout\`, ends the stream, with the status of the
  code (INVALID_ARGUMENT, not INTERNAL, for \`invalid_argument\`), once the events that were taken before it are answered; those that have no outcome then were not written, those sent just before it among them.
- Two answers of the gRPC port carry no ErrorInfo: DEADLINE_EXCEEDED, where it says that the caller's own time ran out and the outcome is unknown
  (the service's own \`outcome_unknown\` has it), and HTTP's 415 for a media type that is not gRPC's, since who sends that reads no gRPC.
- With an API key, \`X-ACTOR-TYPE\` (\`human\`, \`service\`, \`external\` or \`device\`; \`service\` if left out) is the \`actor_type\` of the event
  that a call writes: of masters made, events appended, masters closed, grants and revocations. Openings and closings of ledgers are the
  service's own events, of type \`service\` no matter which actor asked.
- A \`Connect-Timeout-Ms\` that is not 1 to 10 digits, and a \`grpc-timeout\` over gRPC-Web that is not 1 to 8 digits and a unit, is
  \`invalid_argument\`, in the envelope as over REST.
- In development mode the authority's key is not published, so that its seals cannot be verified from outside.
`;

const differences = `
## What the document does not say

\`/openapi.json\` describes the REST calls. Schemathesis (\`npm run test:schemathesis\`) asks a node whether it does what the
document says, and finds these five differences alone:

1. A snapshot and a proof take exactly one of \`organization_id\`, \`ledger_id\` and \`master_id\`. OpenAPI cannot say that of
   query parameters: none or two are \`invalid_argument\`.
2. A \`cursor\` has the form in the document, and is also a \`next_cursor\` of the same list; another one is
   \`invalid_argument\`.
3. \`X-Delivery-Chain\` is JSON in a header, and a \`public_key\` is a point of prime order: text of the right form can still
   be \`invalid_json\`, \`invalid_argument\` or \`invalid_public_key\`. So can a time that names no day of the calendar.
4. Objects of callers (\`payload\`, \`metadata\`, \`permissions\`) are I-JSON: a number that canonical JSON would change is
   \`unsafe_number\`, and \`reserved_field\`, \`caused_by_hash\` and \`access\` have rules of their own.
5. Two answers are no faults of the service: \`501 namespace_reserved\` of the resolver, and \`422 idempotency_key_reused\`
   for a good request under a key that was used for another one.
`;

/** Markdown. */
export function apiPage(document: ApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]) => ({ path, verb: verb.toUpperCase(), operation })),
  );
  const sections = document.tags.map(({ name, description }) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(name));
    const entries = own.map(({ path, verb, operation }) => operationText(document, path, verb, operation));
    return [`## ${name}`, '', description ?? '', '', ...entries].join('\n');
  });
  return `${[head, differences, ...sections].join('\n').trimEnd()}\n`;
}

function operationText(document: ApiDocument, path: string, verb: string, operation: Operation): string {
  const lines = [
    `### ${verb} ${path}`,
    '',
    `\`${operation.operationId}\` · ${auth(operation)}`,
    '',
    operation.description,
    '',
  ];
  const asked = [
    ...(operation.parameters ?? [])
      .filter((parameter) => parameter.name !== undefined && parameter.in !== 'header')
      .map((parameter) => `| \`${parameter.name}\` | ${parameter.in} | ${cell(parameter.description)} |`),
    ...fields(document, operation.requestBody).map(([name, type, text]) => `| \`${name}\` | ${type} | ${text} |`),
  ];
  if (asked.length > 0) lines.push('| request | | |', '|---|---|---|', ...asked, '');
  const answered = fields(document, operation.responses['200']).map(
    ([name, type, text]) => `| \`${name}\` | ${type} | ${text} |`,
  );
  if (answered.length > 0) lines.push('| answer | | |', '|---|---|---|', ...answered, '');
  else if (operation.responses['204'] !== undefined) lines.push('Answers 204.', '');
  return lines.join('\n');
}

function auth(operation: Operation): string {
  const schemes = (operation.security ?? []).flatMap((scheme) => Object.keys(scheme));
  if (schemes.length === 0) return 'no credential';
  const ways = [schemes.includes('ApiKey') ? 'API key' : '', schemes.includes('EntityActorId') ? 'entity headers' : ''];
  return ways.filter((way) => way !== '').join(' or ');
}

function fields(document: ApiDocument, body: Body | undefined): [name: string, type: string, text: string][] {
  const schema = resolve(document, body?.content?.['application/json']?.schema);
  const shape = schema?.type === 'array' ? resolve(document, schema.items) : schema;
  return Object.entries(shape?.properties ?? {}).map(([name, field]) => {
    const required = shape?.required?.includes(name) === true;
    return [
      name,
      `${typeName(field)}${required ? '' : ', optional'}`,
      cell(field.description ?? resolve(document, field)?.description),
    ];
  });
}

function resolve(document: ApiDocument, schema: Schema | undefined): Schema | undefined {
  const name = schema?.$ref?.split('/').at(-1);
  return name === undefined ? schema : document.components.schemas[name];
}

function typeName(schema: Schema): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? 'object';
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return choices.map(typeName).join(' or ');
  if (schema.items !== undefined) return `array of ${typeName(schema.items)}`;
  return typeof schema.type === 'string' ? schema.type : (schema.type ?? ['object']).join(' or ');
}

function cell(text: string | undefined): string {
  return (text ?? '').replaceAll('|', '\\|').replaceAll('\n', ' ');
}
