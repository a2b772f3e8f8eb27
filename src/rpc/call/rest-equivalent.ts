import type { Message } from '@bufbuild/protobuf';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { RestRoute } from '../endpoints/routes.ts';
import type { RestEquivalent } from './incoming-call.ts';

/**
 * Returns the REST request that a gRPC or Connect call would be. Methods without a REST route (bidirectional streams)
 * count as POST to their gRPC path.
 */
export function equivalentOf(endpoint: Endpoint, message: Message | null): RestEquivalent {
  const { route } = endpoint;
  if (route === null) return { verb: 'POST', path: endpoint.rpcPath };
  const fields = message as unknown as Readonly<Record<string, unknown>> | null;
  const value = (name: string): string => {
    const field = endpoint.method.input.fields.find((candidate) => candidate.name === name);
    return field === undefined || fields === null ? '' : String(fields[field.localName] ?? '');
  };
  return { verb: route.httpMethod, path: filledPath(route, value) };
}

/** Templates split at their parameters: literals at even indexes, parameter names at odd ones. */
const pieces = new WeakMap<RestRoute, readonly string[]>();

/** Returns the path of a route with its parameters filled in, percent-encoded. */
export function filledPath(route: RestRoute, value: (param: string) => string): string {
  if (route.pathParams.length === 0) return route.template;
  let cut = pieces.get(route);
  if (cut === undefined) {
    cut = route.template.split(/\{([a-z0-9_]+)\}/);
    pieces.set(route, cut);
  }
  let path = cut[0] ?? '';
  for (let at = 1; at < cut.length; at += 2) path += encodeURIComponent(value(cut[at] ?? '')) + (cut[at + 1] ?? '');
  return path;
}
