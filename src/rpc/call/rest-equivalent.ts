import type { Message } from '@bufbuild/protobuf';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { RestRoute } from '../endpoints/routes.ts';
import type { RestEquivalent } from './incoming-call.ts';

/**
 * Returns the REST request that a gRPC or Connect call would be. Methods without a REST route count as POST to their
 * gRPC path.
 */
export function equivalentOf({ route, rpcPath, method }: Endpoint, message: Message | null): RestEquivalent {
  if (route === null) return { verb: 'POST', path: rpcPath };
  const fields = message as unknown as Readonly<Record<string, unknown>> | null;
  const value = (name: string): string => {
    const field = method.input.fields.find((candidate) => candidate.name === name);
    return field === undefined || fields === null ? '' : String(fields[field.localName] ?? '');
  };
  return { verb: route.httpMethod, path: filledPath(route, value) };
}

/** Returns the path of a route with its parameters filled in, percent-encoded. */
export function filledPath({ pathPieces }: RestRoute, value: (param: string) => string): string {
  let path = pathPieces[0] ?? '';
  for (let at = 1; at < pathPieces.length; at += 2)
    path += encodeURIComponent(value(pathPieces[at] ?? '')) + (pathPieces[at + 1] ?? '');
  return path;
}
