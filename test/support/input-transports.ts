import { create, type DescField, type DescMethod, fromBinary, ScalarType, toBinary } from '@bufbuild/protobuf';
import { codeFromString } from '@connectrpc/connect/protocol-connect';
import type { Client } from '@grpc/grpc-js';
import { type ErrorInfo, ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import type { AppendEventsResponse } from '../../src/gen/svc/v1/masters_pb.ts';
import { rpcPathOf } from '../../src/rpc/endpoints/endpoint.ts';
import { restRoutes } from '../../src/rpc/endpoints/routes.ts';
import { jsonRule } from '../../src/service/encoding/json-field.ts';
import { methodNamed, protobufForm, restCall } from './access-transports.ts';
import { grpcStatusOf, httpStatusOf } from './code-statuses.ts';
import { beginGrpc, callGrpc, openGrpcStream } from './grpc-client.ts';
import { JsonText, jsonOf } from './json-text.ts';
import { type Fields, rest } from './parties-rest.ts';

/** A call with the fields as REST's JSON has them; undefined: left out. */
interface SentInput {
  readonly method: string;
  readonly fields: Fields;
  /** Names of the fields that are not as they should be: what a transport cannot say of them does not reach it. */
  readonly changed: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * One transport: `ok`, or the refusal in words that are the same at all transports, its code and the field that its
 * details name. What differs from the table of codes (code-statuses.ts) stands in the words too: a status that does not
 * go with the code, a domain, a missing request id. null: this transport has no way to say it.
 */
type InputTransport = (sent: SentInput) => Promise<string | null>;

export function inputTransports(base: string, client: Client): ReadonlyMap<string, InputTransport> {
  return new Map<string, InputTransport>([
    ['REST', restTransport(base)],
    ['Connect JSON', connectTransport(base, 'application/json', connectJson, canSayInProtobufJson)],
    ['Connect binary', connectTransport(base, 'application/proto', binary, canSayInBinary)],
    ['gRPC', grpcTransport(client)],
    ['AppendEvents', streamTransport(client)],
  ]);
}

/** How a refusal is told here. `missing`: its sentence says that the field is missing. */
export function refusal(code: string, field: string | null, missing?: 'missing'): string {
  return (field === null ? code : `${code} of ${field}`) + (missing === undefined ? '' : ', missing');
}

/** Codes that are about headers alone. */
const headerCodes: ReadonlySet<string> = new Set([
  'unauthenticated',
  'invalid_api_key',
  'invalid_actor_identity',
  'signature_required',
  'invalid_signature',
  'unknown_signing_key',
]);

function told(code: string, message: string, faults: readonly (string | false)[], details: unknown): string {
  const { field, header } = (details ?? {}) as { field?: string; header?: string };
  const headerFaults = [
    header === undefined && headerCodes.has(code) && 'without the name of the header',
    header !== undefined && !message.includes(header) && 'in a sentence without the name of the header',
  ];
  const wrong = [...faults, ...headerFaults].filter((fault) => fault !== false);
  const missing = message.includes(`Field ${field} is missing or empty; expected: `) ? 'missing' : undefined;
  return [refusal(code, field ?? null, missing), ...wrong].join(', ');
}

interface RestError {
  readonly code: string;
  readonly message: string;
  readonly request_id: string;
  readonly details?: unknown;
}

function restTransport(base: string): InputTransport {
  return async ({ method, fields, changed, headers }) => {
    const route = restRoutes().find((candidate) => !candidate.alias && candidate.method === methodNamed(method));
    if (route === undefined) return null;
    const sayable = changed.every((name) => {
      const value = fields[name];
      if (route.pathParams.includes(name)) return typeof value === 'string' && value !== '';
      if (route.hasBody) return !(value instanceof JsonText && value.text === '');
      const field = fieldOf(route.method, name);
      // Text is all that a query has.
      return value === undefined || typeof value === 'string' || (field !== undefined && !isString(field));
    });
    if (!sayable) return null;
    const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
    const call = restCall(method, given);
    if (methodNamed(method).methodKind === 'server_streaming' && (await begins(base + call.path, headers))) return 'ok';
    const answer = await rest(base, call.method, call.path, {
      headers,
      ...(call.body === undefined ? {} : { body: jsonOf(call.body) }),
    });
    if (answer.code === null) return 'ok';
    const { code, message, details, request_id } = answer.body.error as RestError;
    return told(
      code,
      message,
      [
        answer.status !== httpStatusOf(code) && `with status ${answer.status}`,
        request_id !== answer.headers.get('x-request-id') && 'under another request id',
      ],
      details,
    );
  };
}

/** Whether a stream begins. It is left at once. */
async function begins(url: string, headers: SentInput['headers']): Promise<boolean> {
  const ending = new AbortController();
  const { ok } = await fetch(url, { headers, signal: ending.signal });
  ending.abort();
  return ok;
}

function connectTransport(
  base: string,
  contentType: string,
  write: (method: DescMethod, fields: Fields) => string | Uint8Array,
  canSay: CanSay,
): InputTransport {
  return async ({ method: name, fields, changed, headers }) => {
    const method = methodNamed(name);
    if (method.methodKind !== 'unary' || !changed.every((field) => canSay(method, field, fields[field]))) return null;
    const response = await fetch(base + rpcPathOf(method), {
      method: 'POST',
      headers: { ...headers, 'content-type': contentType },
      body: new Uint8Array(Buffer.from(write(method, fields))),
    });
    if (response.ok) {
      await response.arrayBuffer();
      return 'ok';
    }
    const error = (await response.json()) as {
      code: string;
      message: string;
      details?: { type: string; value: string }[];
    };
    const [detail] = error.details ?? [];
    const info = fromBinary(ErrorInfoSchema, Buffer.from(detail?.value ?? '', 'base64'));
    const status = codeFromString(error.code as Parameters<typeof codeFromString>[0]);
    return toldByInfo(info, error.message, status, response.headers.get('x-request-id'));
  };
}

function grpcTransport(client: Client): InputTransport {
  return async ({ method: name, fields, changed, headers }) => {
    const method = methodNamed(name);
    const { methodKind } = method;
    if (methodKind === 'bidi_streaming' || !changed.every((field) => canSayInBinary(method, field, fields[field])))
      return null;
    if (!Object.values(headers).every((value) => /^[\x20-\x7e]*$/.test(value))) return null;
    const { error, info, metadata } = await (methodKind === 'unary' ? callGrpc : beginGrpc)(
      client,
      method,
      messageOf(method, fields),
      headers,
    );
    if (error === null) return 'ok';
    const [requestId] = metadata.get('x-request-id');
    return toldByInfo(info, error.details, error.code, requestId === undefined ? null : String(requestId));
  };
}

function toldByInfo(
  info: ErrorInfo | null,
  message: string,
  status: number | undefined,
  requestId: string | null,
): string {
  if (info === null) return `status ${status} without ErrorInfo`;
  const { reason, domain, metadata } = info;
  return told(
    reason,
    message,
    [
      status !== grpcStatusOf(reason) && `with status ${status}`,
      domain !== 'svc' && `of domain ${domain}`,
      (requestId === null || metadata.request_id !== requestId) && 'under another request id',
    ],
    JSON.parse(metadata.details ?? '{}'),
  );
}

/** The outcome of the one event of a stream. */
function streamTransport(client: Client): InputTransport {
  return async ({ method: name, fields, changed, headers }) => {
    const method = methodNamed(name);
    if (method.methodKind !== 'bidi_streaming') return null;
    if (!changed.every((field) => canSayInBinary(method, field, fields[field]))) return null;
    const stream = openGrpcStream(client, method, headers);
    return new Promise((resolve) => {
      stream.on('data', (answer) => {
        const { outcome } = answer as unknown as AppendEventsResponse;
        stream.end();
        resolve(
          outcome.case === 'error'
            ? told(outcome.value.code, outcome.value.message, [], JSON.parse(outcome.value.details || '{}'))
            : 'ok',
        );
      });
      stream.on('error', ({ message }) => resolve(`the stream ended: ${message}`));
      stream.write(messageOf(method, fields));
    });
  };
}

type CanSay = (method: DescMethod, name: string, value: unknown) => boolean;

/** null is no other than left out there. */
const canSayInProtobufJson: CanSay = (_method, _name, value) => value !== null;

const canSayInBinary: CanSay = (method, name, value) => {
  const field = fieldOf(method, name);
  if (field === undefined) return false;
  if (value === undefined) return true;
  if (jsonRule(field).raw) return value !== null;
  if (field.fieldKind === 'list') return Array.isArray(value) && value.every((item) => typeof item === 'string');
  if (field.fieldKind !== 'scalar') return false;
  switch (field.scalar) {
    case ScalarType.BOOL:
      return typeof value === 'boolean';
    case ScalarType.INT32:
      return Number.isInteger(value) && Number(value) === (Number(value) | 0);
    case ScalarType.INT64:
      return Number.isInteger(value);
    default:
      return typeof value === 'string' && value.isWellFormed();
  }
};

function connectJson(method: DescMethod, fields: Fields): string {
  const members = Object.entries(fields).map(([name, value]) => {
    const field = fieldOf(method, name);
    const isText = field !== undefined && jsonRule(field).raw && value !== undefined && value !== null;
    return [name, isText ? jsonOf(value) : value];
  });
  return jsonOf(Object.fromEntries(members));
}

function binary(method: DescMethod, fields: Fields): Uint8Array {
  return toBinary(method.input, create(method.input, messageOf(method, fields)));
}

function messageOf(method: DescMethod, fields: Fields): Record<string, unknown> {
  return protobufForm(method, Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
}

function fieldOf(method: DescMethod, name: string): DescField | undefined {
  return method.input.fields.find((field) => field.name === name);
}

function isString(field: DescField): boolean {
  return field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING;
}
