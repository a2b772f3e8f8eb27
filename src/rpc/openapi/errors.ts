import { errorTable } from '../../domain/error-codes.ts';
import { errorCodes } from '../../domain/errors.ts';
import { Auth } from '../../gen/svc/v1/options_pb.ts';
import { ResolverService } from '../../gen/svc/v1/resolver_pb.ts';
import { statusOf } from '../call/status.ts';
import type { RestRoute } from '../endpoints/routes.ts';
import type { JsonObject } from './format.ts';
import { takesIdempotencyKey } from './headers.ts';

/** The HTTP statuses of the errors of a route, in order. */
export function errorStatuses(route: RestRoute): readonly number[] {
  const { method, rule, httpMethod } = route;
  const needsCredential = rule.auth !== Auth.NONE;
  const writes = httpMethod === 'POST' || httpMethod === 'PATCH';
  // Each call refuses unknown parameters if it is asked to (X-Strict).
  const statuses = new Set([400, 429, 500, 503]);
  if (method.input.fields.length > 0) statuses.add(404);
  if (needsCredential) statuses.add(401).add(403).add(404);
  const keyed = takesIdempotencyKey(route);
  if (writes || keyed) statuses.add(409).add(504);
  if (writes) statuses.add(413).add(415);
  if (keyed) statuses.add(422);
  if (method === ResolverService.method.resolveActor) statuses.add(501);
  return [...statuses].sort();
}

/** `components.responses`: one answer for each status of errors. */
export function errorResponses(): JsonObject {
  const statuses = [...new Set(errorCodes.map((code) => statusOf(code).http))].sort();
  return Object.fromEntries(statuses.map((status) => [`Error${status}`, errorResponse(status)]));
}

const retryAfter: JsonObject = {
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } },
};

const rateHeaders: JsonObject = {
  ...retryAfter,
  RateLimit: {
    description: 'What is left of the limit, and in how many seconds there is more.',
    schema: { type: 'string' },
  },
  'RateLimit-Policy': {
    description: 'The limit: calls at once, and the seconds they count for.',
    schema: { type: 'string' },
  },
};

function errorResponse(status: number): JsonObject {
  const codes = errorCodes.filter((code) => statusOf(code).http === status);
  const code = codes[0] ?? 'internal';
  return {
    description: codes.map((name) => `\`${name}\`: ${errorTable[name].meaning}.`).join('\n\n'),
    headers: {
      'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
      'X-Ignored-Parameters': { $ref: '#/components/headers/X-Ignored-Parameters' },
      ...(status === 429 ? rateHeaders : {}),
      ...(status === 503 ? retryAfter : {}),
      ...(status === 405 ? { Allow: { description: 'Methods of the path.', schema: { type: 'string' } } } : {}),
    },
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/ErrorEnvelope' },
        example: {
          error: { code, message: `${capitalized(errorTable[code].meaning)}.`, request_id: 'req-7', details: {} },
        },
      },
    },
  };
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `components.schemas` of errors. Languages have an `Error` of their own, so the names are others. */
export const errorSchemas: { readonly [name: string]: JsonObject } = {
  ErrorEnvelope: {
    type: 'object',
    description: 'The envelope of every error.',
    required: ['error'],
    properties: { error: { description: 'The error.', $ref: '#/components/schemas/ErrorBody' } },
  },
  ErrorBody: {
    type: 'object',
    description: 'What went wrong.',
    required: ['code', 'message', 'request_id'],
    properties: {
      code: { type: 'string', description: 'What went wrong, for programs.', enum: errorCodes },
      message: { type: 'string', description: 'One sentence that a person can act on.' },
      request_id: { type: 'string', description: "The call's request id." },
      details: {
        type: 'object',
        description:
          'What helps to mend the call: the field, the limit, what was expected. Left out where nothing does.',
      },
      cut: {
        type: 'array',
        description: 'What was too long to be shown whole: names of details, and `message`. Left out if nothing was.',
        items: { type: 'string' },
      },
    },
  },
};
