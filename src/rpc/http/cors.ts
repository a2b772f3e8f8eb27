const METHODS = 'GET, HEAD, POST, PATCH, DELETE';
const REQUEST_HEADERS = [
  'Authorization, Content-Type, Accept, Idempotency-Key, If-None-Match, Last-Event-ID, X-Request-Id',
  'X-Actor-Id, X-Actor-Type, X-Actor-Sig, X-Signing-Key-Id, X-Timestamp, X-Delivery-Chain, X-Strict',
  'X-Actor-Digest, X-Actor-Canonical',
  'Connect-Protocol-Version, Connect-Timeout-Ms, Connect-Content-Encoding, Grpc-Timeout, X-Grpc-Web, X-User-Agent',
].join(', ');
const EXPOSED = [
  'X-Request-Id, Idempotent-Replayed, Retry-After, RateLimit, RateLimit-Policy, ETag, X-Ignored-Parameters',
  'Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin',
].join(', ');
const PREFLIGHT_MAX_AGE_S = '7200';

export type Cors = ReturnType<typeof corsFor>;

/**
 * Lets the pages of some origins call the HTTP port (WHATWG Fetch, CORS protocol). `origins` are exact origins, or `*`
 * alone. If the list is empty, no page of another origin may call.
 */
export function corsFor(origins: readonly string[]) {
  const any = origins.includes('*');
  const allowed = new Set(origins);
  const allow = (origin: string | undefined): string | null => {
    if (origin === undefined) return null;
    if (any) return '*';
    return allowed.has(origin) ? origin : null;
  };
  const vary = any || origins.length === 0 ? [] : ['vary', 'Origin'];
  return {
    /** The headers of an answer to a request from `origin`. They grant access only if the origin may call. */
    answer(origin: string | undefined): readonly string[] {
      const value = allow(origin);
      if (value === null) return vary;
      return ['access-control-allow-origin', value, 'access-control-expose-headers', EXPOSED, ...vary];
    },
    /** The headers that answer a preflight; null if the origin may not call. */
    preflight(origin: string | undefined): readonly string[] | null {
      const value = allow(origin);
      if (value === null) return null;
      return [
        ...['access-control-allow-origin', value, 'access-control-allow-methods', METHODS],
        ...['access-control-allow-headers', REQUEST_HEADERS, 'access-control-max-age', PREFLIGHT_MAX_AGE_S, ...vary],
      ];
    },
  };
}
