import { WebhookBodySchema } from '../../gen/svc/v1/webhooks_pb.ts';
import { restRoutes } from '../endpoints/routes.ts';
import { sharedBytes } from '../http/response.ts';
import { readComments } from './comments.ts';
import { errorResponses, errorSchemas } from './errors.ts';
import type { JsonObject } from './format.ts';
import { groups, receiverGroup } from './groups.ts';
import { answerHeaders, headerParameters, securitySchemes } from './headers.ts';
import { operation } from './operation.ts';
import { messageExample, messageRef, type SchemaBook } from './schema.ts';

const DESCRIPTION = `A ledger of signed, hash-chained business events that several parties share.

Every error has one envelope, \`{"error": {"code", "message", "request_id", "details"}}\`. Paths take one trailing slash;
unknown query parameters are ignored and named in \`X-Ignored-Parameters\`, or refused with \`X-Strict: 1\`; unknown
fields of a body are refused. Times are ISO 8601 UTC with three decimals, ids lower-case UUIDs. The same methods are
served over gRPC and Connect from the same descriptors, and over gRPC alone AppendEvents, a stream both ways.`;

let document: JsonObject | undefined;

/** The OpenAPI 3.1 document of the REST transport, from the descriptors and their comments. Made once. */
export function openApiDocument(): JsonObject {
  document ??= makeDocument({ comments: readComments(), schemas: new Map(Object.entries(errorSchemas)) });
  return document;
}

let bytes: Buffer | undefined;

/** The document as JSON, shared by all answers. */
export function openApiBytes(): Buffer {
  bytes ??= sharedBytes(Buffer.from(JSON.stringify(openApiDocument())));
  return bytes;
}

function makeDocument(book: SchemaBook): JsonObject {
  const paths = makePaths(book);
  const webhooks = makeWebhooks(book);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Ledger Trust Service',
      version: 'v1',
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This node.' }],
    tags: groups.map(({ name, description }) => ({ name, description })),
    paths,
    webhooks,
    components: {
      schemas: Object.fromEntries([...book.schemas].sort(([left], [right]) => (left < right ? -1 : 1))),
      responses: errorResponses(),
      parameters: headerParameters,
      headers: answerHeaders,
      securitySchemes,
    },
  };
}

function makePaths(book: SchemaBook): JsonObject {
  const paths: { [template: string]: JsonObject } = {};
  for (const route of restRoutes()) {
    // An operation has one path, so that generators make one function of it. Comments name the other path.
    if (route.alias) continue;
    const item = paths[route.template] ?? {};
    item[route.httpMethod.toLowerCase()] = operation(book, route);
    paths[route.template] = item;
  }
  return paths;
}

/** The requests that webhook receivers get. */
function makeWebhooks(book: SchemaBook): JsonObject {
  return {
    event: {
      post: {
        operationId: 'receiveEvent',
        // openapi-generator makes no client of it: its Python client of a webhook does not compile.
        'x-internal': true,
        tags: [receiverGroup],
        summary: 'An event that a subscription matches.',
        description:
          'Delivered at least once: a 2xx within 10 seconds is success, redirects are not followed, 410 ends the subscription. After the first attempt come four more, 30 seconds, 5 minutes, 30 minutes and 2 hours apart.',
        security: [],
        parameters: [
          {
            name: 'X-SVC-Signature',
            in: 'header',
            required: true,
            description:
              '`sha256=` and the hex HMAC-SHA256, keyed with the text of the secret, of `svc-webhook-v1:` followed by the raw body.',
            schema: { type: 'string', pattern: '^sha256=[0-9a-f]{64}$' },
          },
        ],
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: messageRef(book, WebhookBodySchema, 'answer'),
              example: messageExample(WebhookBodySchema),
            },
          },
        },
        responses: { '2XX': { description: 'The event was taken.' } },
      },
    },
  };
}
