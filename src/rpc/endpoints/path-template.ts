import { LedgerError } from '../../domain/errors.ts';
import { ownText } from '../../runtime/collections/own-text.ts';

type TemplateSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'param'; readonly name: string };

/**
 * Parses a path template of google.api.http: literals and `{field}` parameters that fill a whole segment. Throws for
 * anything else, which is a mistake in the descriptors.
 */
export function parseTemplate(template: string): readonly TemplateSegment[] {
  if (!/^(\/[^/]+)+$/.test(template)) throw new Error(`Not a path template: ${template}`);
  return template
    .slice(1)
    .split('/')
    .map((segment) => {
      const param = /^\{([a-z][a-z0-9_]*)\}$/.exec(segment)?.[1];
      if (param !== undefined) return { kind: 'param', name: param };
      if (/[{}*]/.test(segment)) throw new Error(`Not a path template: ${template}`);
      return { kind: 'literal', text: segment };
    });
}

interface Routed {
  readonly httpMethod: string;
  readonly template: string;
}

/** `allow` lists the methods of the path, with HEAD if GET is one of them. */
type RouteMatch<R extends Routed> =
  | { readonly kind: 'found'; readonly route: R; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'method_not_allowed'; readonly allow: readonly string[] };

interface Node<R> {
  readonly literals: Map<string, Node<R>>;
  param: Node<R> | null;
  /** By HTTP method. Two templates may name the same parameter differently. */
  readonly ends: Map<string, { readonly route: R; readonly names: readonly string[] }>;
}

/**
 * Returns a function that finds the route and its parameters for an HTTP method and a raw path (percent-encoded, with
 * or without its query).
 *
 * Each segment is percent-decoded exactly once. One trailing slash is accepted. A literal wins over a parameter in the
 * same place for every method, so `/actors/lookup` is never an actor named lookup. HEAD matches where GET does.
 *
 * The function throws `invalid_argument` for a path whose percent-encoding is broken. `makeMatcher` throws for two
 * routes with the same method and path.
 */
export function makeMatcher<R extends Routed>(
  routes: readonly R[],
): (method: string, rawPath: string) => RouteMatch<R> {
  const root = makeNode<R>();
  for (const route of routes) addRoute(root, route);
  return (method, rawPath) => {
    const values: string[] = [];
    const end = findEnd(root, splitPath(rawPath), 0, values);
    if (!end) return { kind: 'not_found' };
    const found = end.ends.get(method) ?? (method === 'HEAD' ? end.ends.get('GET') : undefined);
    if (!found) return { kind: 'method_not_allowed', allow: allowed(end) };
    const params = Object.fromEntries(found.names.map((name, index) => [name, values[index] ?? '']));
    return { kind: 'found', route: found.route, params };
  };
}

function makeNode<R>(): Node<R> {
  return { literals: new Map(), param: null, ends: new Map() };
}

function addRoute<R extends Routed>(root: Node<R>, route: R): void {
  const names: string[] = [];
  let node = root;
  for (const segment of parseTemplate(route.template)) {
    if (segment.kind === 'param') {
      names.push(segment.name);
      node.param ??= makeNode();
      node = node.param;
    } else {
      const next: Node<R> = node.literals.get(segment.text) ?? makeNode();
      node.literals.set(segment.text, next);
      node = next;
    }
  }
  if (node.ends.has(route.httpMethod)) throw new Error(`Two routes for ${route.httpMethod} ${route.template}`);
  node.ends.set(route.httpMethod, { route, names });
}

function splitPath(rawPath: string): readonly string[] {
  const query = rawPath.indexOf('?');
  const path = query < 0 ? rawPath : rawPath.slice(0, query);
  const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
  if (!trimmed.startsWith('/')) return [];
  return trimmed.slice(1).split('/').map(decodeSegment);
}

function decodeSegment(segment: string): string {
  if (!segment.includes('%')) return ownText(segment);
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new LedgerError('invalid_argument', 'The path is not percent-encoded UTF-8.', {
      field: 'path',
      expected: 'percent-encoded UTF-8',
    });
  }
}

/** Returns the most specific node at which a route ends, or null. Leaves the parameters' values in `values`. */
function findEnd<R>(node: Node<R>, segments: readonly string[], at: number, values: string[]): Node<R> | null {
  const segment = segments[at];
  if (segment === undefined) return node.ends.size > 0 ? node : null;
  const literal = node.literals.get(segment);
  const byLiteral = literal ? findEnd(literal, segments, at + 1, values) : null;
  if (byLiteral) return byLiteral;
  if (!node.param || segment === '') return null;
  values.push(segment);
  const byParam = findEnd(node.param, segments, at + 1, values);
  if (!byParam) values.pop();
  return byParam;
}

function allowed<R>(end: Node<R>): readonly string[] {
  const methods = [...end.ends.keys()];
  return (methods.includes('GET') ? [...methods, 'HEAD'] : methods).sort();
}
