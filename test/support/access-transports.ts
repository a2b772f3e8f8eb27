import { type DescMethod, getOption, ScalarType } from '@bufbuild/protobuf';
import type { Client } from '@grpc/grpc-js';
import { json } from '../../src/gen/svc/v1/options_pb.ts';
import { rpcPathOf } from '../../src/rpc/endpoints/endpoint.ts';
import { apiServices, restRoutes } from '../../src/rpc/endpoints/routes.ts';
import { grpcStatusOf, httpStatusOf } from './code-statuses.ts';
import { beginGrpc, callGrpc, type GrpcAnswer, infoOf, openGrpcStream } from './grpc-client.ts';
import { jsonOf } from './json-text.ts';
import { type Fields, rest } from './parties-rest.ts';

type Headers = Readonly<Record<string, string>>;

/** Calls a method by name with fields as in REST's JSON; returns `ok`, or the code with its status. */
export type AccessTransport = (method: string, fields: Fields, headers: Headers) => Promise<string>;

/** All methods of the API, as `Service.Method`. */
export const apiMethods: ReadonlyMap<string, DescMethod> = new Map(
  apiServices.flatMap((service) => service.methods.map((method) => [`${service.name}.${method.name}`, method])),
);

export function methodNamed(name: string): DescMethod {
  const method = apiMethods.get(name);
  if (method === undefined) throw new Error(`no method ${name}`);
  return method;
}

/** Whether the method can be called over REST: what streams both ways cannot. */
export function hasRest(name: string): boolean {
  return restRoutes().some(({ method }) => method === methodNamed(name));
}

/** `status` is what the code came with, `expected` what code-statuses.ts says. */
function outcome(code: string, status: number, expected: number | undefined): string {
  return expected === status ? code : `${code} with status ${status}`;
}

/** The REST call of a method with these fields. */
export function restCall(name: string, fields: Fields): { method: string; path: string; body?: Fields } {
  const route = restRoutes().find(({ method, alias }) => method === methodNamed(name) && !alias);
  if (route === undefined) throw new Error(`${name} has no route`);
  const rest = Object.entries(fields).filter(([field]) => !route.pathParams.includes(field));
  const path = route.template.replace(/\{(\w+)\}/g, (_, field: string) => encodeURIComponent(String(fields[field])));
  if (route.hasBody) return { method: route.httpMethod, path, body: Object.fromEntries(rest) };
  const query = new URLSearchParams(rest.map(([field, value]): [string, string] => [field, String(value)]));
  return { method: route.httpMethod, path: query.size > 0 ? `${path}?${query}` : path };
}

/** Everything that REST answers but for what names the request itself. */
export function restWords(base: string): AccessTransport {
  return async (name, fields, headers) => {
    const { method, path, body } = restCall(name, fields);
    const answer = await rest(base, method, path, { headers, body });
    return JSON.stringify([answer.status, wordsOf(answer.raw)]);
  };
}

/** Everything that gRPC answers but for what names the request itself. */
export function grpcWords(client: Client): AccessTransport {
  return async (name, fields, headers) => {
    const method = methodNamed(name);
    const { error, info } = await callGrpc(client, method, protobufForm(method, fields), headers);
    return JSON.stringify([error?.code, error?.details, info?.reason, wordsOf(JSON.stringify(info?.metadata ?? {}))]);
  };
}

function wordsOf(raw: string): string {
  return raw.replace(/"request_id":"[^"]*"/g, '"request_id":""');
}

export function restTransport(base: string): AccessTransport {
  return async (name, fields, headers) => {
    const { method, path, body } = restCall(name, fields);
    const ending = new AbortController();
    const response = await fetch(`${base}${path}`, {
      method,
      signal: ending.signal,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (response.ok) {
      // Of a stream its beginning is enough.
      if (methodNamed(name).methodKind === 'server_streaming') {
        await response.body?.getReader().read();
        ending.abort();
      } else await response.text();
      return 'ok';
    }
    const { error } = (await response.json()) as { error: { code: string } };
    return outcome(error.code, response.status, httpStatusOf(error.code));
  };
}

export function grpcTransport(client: Client): AccessTransport {
  return async (name, fields, headers) => {
    const method = methodNamed(name);
    const message = protobufForm(method, fields);
    switch (method.methodKind) {
      case 'unary': {
        return codeOf(await callGrpc(client, method, message, headers));
      }
      case 'server_streaming':
        return codeOf(await beginGrpc(client, method, message, headers));
      case 'bidi_streaming':
        return streamed(client, method, message, headers);
      default:
        throw new Error(`no transport for ${rpcPathOf(method)}`);
    }
  };
}

function codeOf({ error, info }: GrpcAnswer): string {
  if (error === null) return 'ok';
  const code = info?.reason ?? error.details;
  return outcome(code, error.code, grpcStatusOf(code));
}

/** The fields as protobuf has them: JSON as text, whole numbers of 64 bits as such. */
export function protobufForm(method: DescMethod, fields: Fields): Record<string, unknown> {
  const entries = Object.entries(fields).map(([name, value]): [string, unknown] => {
    const field = method.input.fields.find((candidate) => candidate.name === name);
    if (field === undefined) throw new Error(`${method.name} has no field ${name}`);
    if (getOption(field, json).raw) return [field.localName, jsonOf(value)];
    if (field.fieldKind === 'scalar' && field.scalar === ScalarType.INT64)
      return [field.localName, BigInt(String(value))];
    return [field.localName, value];
  });
  return Object.fromEntries(entries);
}

/** The outcome of the stream's one event, or what ended the stream. */
function streamed(client: Client, method: DescMethod, message: object, headers: Headers): Promise<string> {
  const call = openGrpcStream(client, method, headers);
  return new Promise((resolve) => {
    call.on('data', (answer) => {
      const { outcome: found } = answer as unknown as { outcome: { case: string; value: { code?: string } } };
      resolve(found.case === 'appended' ? 'ok' : String(found.value.code));
      call.end();
    });
    call.on('error', (error) => {
      const refused = error as never as Parameters<typeof infoOf>[0];
      const code = infoOf(refused)?.reason ?? refused.details;
      resolve(outcome(code, refused.code, grpcStatusOf(code)));
    });
    call.on('end', () => resolve('nothing'));
    call.write(message);
  });
}
