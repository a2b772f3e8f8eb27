import { expect } from 'vitest';
import { undocumented } from './documented.ts';

export type Fields = Readonly<Record<string, unknown>>;

interface RestRequest {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; a string is sent as it is. */
  readonly body?: unknown;
}

/** A party that calls with its API key. */
interface Caller {
  readonly bearer: Readonly<Record<string, string>>;
}

/** An answer over REST, with what tests read from it. */
export interface RestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly raw: string;
  /** The parsed body; {} where there is none. */
  readonly body: Fields;
  /** The text at a path such as `sandbox.signing_key.kid`; throws where there is none. */
  text(path: string): string;
  rows(path: string): Fields[];
  /** The code of an error's envelope; null on success. */
  readonly code: string | null;
}

/** A call of a party, or with exactly these headers. Every answer must match `/openapi.json`. */
export async function rest(
  base: string,
  method: string,
  path: string,
  by: Caller | RestRequest = {},
  bodyOfCaller?: unknown,
): Promise<RestAnswer> {
  const { headers, body: sent } = 'bearer' in by ? { headers: by.bearer, body: bodyOfCaller } : by;
  const response = await fetch(`${base}${path}`, {
    method,
    headers: { ...(sent === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(sent === undefined ? {} : { body: typeof sent === 'string' ? sent : JSON.stringify(sent) }),
  });
  const raw = await response.text();
  expect(undocumented(method, path, response.status, raw)).toEqual([]);
  const parsed: unknown = raw.startsWith('{') || raw.startsWith('[') ? JSON.parse(raw) : {};
  const body = (Array.isArray(parsed) ? { items: parsed } : parsed) as Fields;
  const at = (where: string): unknown => valueAt(body, where);
  return {
    status: response.status,
    headers: response.headers,
    raw,
    body,
    code: response.status < 400 ? null : String(at('error.code')),
    text(where) {
      const value = at(where);
      if (typeof value !== 'string')
        throw new Error(`${method} ${path}: no text at ${where} of ${response.status} ${raw}`);
      return value;
    },
    rows(where) {
      const value = at(where);
      if (!Array.isArray(value)) throw new Error(`${method} ${path}: no list at ${where} of ${response.status} ${raw}`);
      return value as Fields[];
    },
  };
}

function valueAt(body: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as Fields | undefined)?.[name], body);
}

/** A call that must succeed. */
export async function done(...call: Parameters<typeof rest>): Promise<RestAnswer> {
  const answer = await rest(...call);
  const [, method, path] = call;
  if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status} ${answer.raw}`);
  return answer;
}

/** Expects an error of this status and code, in the one envelope and nothing beside it. */
export function expectRefused(answer: RestAnswer, status: number, code: string): void {
  expect({ status: answer.status, code: answer.code, raw: answer.raw }).toMatchObject({ status, code });
  expect(Object.keys(answer.body)).toEqual(['error']);
  const error = answer.body.error as Fields;
  expect(Object.keys(error).filter((name) => name !== 'details')).toEqual(['code', 'message', 'request_id']);
  expect(error.message).toMatch(/\S+ \S+/);
  expect(error.request_id).toBe(answer.headers.get('x-request-id'));
}

/** What every id, time and hash of an answer must look like. */
export const shape = {
  uuid: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-[57][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
  time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  hash: expect.stringMatching(/^[0-9a-f]{64}$/),
  signature: expect.stringMatching(/^[A-Za-z0-9+/]{86}==$/),
};
