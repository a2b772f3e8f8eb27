import { type DescField, type DescMethod, getOption } from '@bufbuild/protobuf';
import { http } from '../gen/google/api/annotations_pb.ts';
import { Auth, rule } from '../gen/svc/v1/options_pb.ts';
import { services } from './services.ts';

export interface RestPlace {
  readonly httpMethod: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'PUT';
  /** For example `/v1/ledgers/{ledger_id}/events`. */
  readonly template: string;
  readonly pathFields: readonly DescField[];
  /** The fields that are not in the path: in the JSON body, or in the query. */
  readonly otherFields: readonly DescField[];
  readonly hasBody: boolean;
  /** The field of the answer that is the whole body. null if the body is the answer itself. */
  readonly responseField: DescField | null;
}

/** A method of the API, for both transports. */
export interface Endpoint {
  /** Its name on the client, for example `createLedger`. */
  readonly name: string;
  readonly method: DescMethod;
  /** `/svc.v1.Service/Method` */
  readonly rpcPath: string;
  /** null for a method that only gRPC has. */
  readonly rest: RestPlace | null;
  /** Whether the method takes a credential. */
  readonly hasCaller: boolean;
  /**
   * Whether the signature of a call is that of its event. Under header identity all other calls sign ENTITY_REQUEST.
   */
  readonly signsEvent: boolean;
  readonly changesState: boolean;
}

const verbs = { get: 'GET', post: 'POST', patch: 'PATCH', delete: 'DELETE', put: 'PUT' } as const;

/** Every method of the API by its name on the client, built from the descriptors. */
export const endpoints: ReadonlyMap<string, Endpoint> = new Map(
  services.flatMap((service) => service.methods.map((method) => [method.localName, endpointOf(method)] as const)),
);

/** The endpoint of a method by its name on the client. Throws TypeError if the API has none of this name. */
export function endpointNamed(name: string): Endpoint {
  const endpoint = endpoints.get(name);
  if (endpoint === undefined) throw new TypeError(`The API has no method ${name}`);
  return endpoint;
}

function endpointOf(method: DescMethod): Endpoint {
  const { auth, signed } = getOption(method, rule);
  const rest = restPlaceOf(method);
  return {
    name: method.localName,
    method,
    rpcPath: `/${method.parent.typeName}/${method.name}`,
    rest,
    hasCaller: auth !== Auth.NONE,
    signsEvent: signed,
    changesState: rest?.httpMethod !== 'GET',
  };
}

function restPlaceOf(method: DescMethod): RestPlace | null {
  const { pattern, body, responseBody } = getOption(method, http);
  if (pattern.case === undefined) return null;
  if (pattern.case === 'custom') throw new TypeError(`${method.name}: no REST route of its own making`);
  const inPath = new Set([...pattern.value.matchAll(/\{([a-z0-9_]+)\}/g)].map(([, name]) => name));
  return {
    httpMethod: verbs[pattern.case],
    template: pattern.value,
    pathFields: method.input.fields.filter((field) => inPath.has(field.name)),
    otherFields: method.input.fields.filter((field) => !inPath.has(field.name)),
    hasBody: body === '*',
    responseField: method.output.fields.find((field) => field.name === responseBody) ?? null,
  };
}
