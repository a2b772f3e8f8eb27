import { answeredError, LedgerTrustError } from '../error.ts';

/** Statuses of proxies in front of the service. Whether the service received the request is not known. */
const gatewayStatuses = new Set([502, 503, 504]);

/** Error codes of failed connection attempts: the request was never sent. */
const neverSent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** The error of an answer with status 300 or above. `retryAfter` is the value of the header. */
export function restError(
  status: number,
  body: string,
  requestId: string | null,
  retryAfter: string | null,
): LedgerTrustError {
  const retryAfterMs = retryAfterOf(retryAfter);
  const envelope = envelopeOf(body);
  if (envelope !== null) {
    const { code, message, request_id: id, details, cut } = envelope;
    return answeredError(code, message, {
      details: typeof details === 'object' && details !== null ? (details as Record<string, unknown>) : {},
      cut: Array.isArray(cut) ? cut.filter((name) => typeof name === 'string') : [],
      requestId: typeof id === 'string' ? id : requestId,
      status,
      retryAfterMs,
    });
  }
  if (gatewayStatuses.has(status)) {
    const message = `A gateway answered ${status}: whether the service got the call is not known.`;
    return new LedgerTrustError('connection_lost', message, { requestId, status, retryAfterMs });
  }
  const message = `The address answered ${status} and not in the words of this API: check the base URL.`;
  return new LedgerTrustError('invalid_answer', message, { requestId, status, retryAfterMs });
}

interface Envelope {
  readonly code: string;
  readonly message: string;
  readonly request_id?: unknown;
  readonly details?: unknown;
  readonly cut?: unknown;
}

function envelopeOf(body: string): Envelope | null {
  try {
    const { error } = JSON.parse(body) as { error?: Envelope };
    return typeof error?.code === 'string' && typeof error.message === 'string' ? error : null;
  } catch {
    return null;
  }
}

/** Milliseconds of a Retry-After in seconds, the form that the service sends. null for any other value. */
export function retryAfterOf(value: string | null): number | null {
  return value !== null && /^\d{1,6}$/.test(value) ? Number(value) * 1_000 : null;
}

/** `details.sent` is false if the request cannot have reached the service. */
export function connectionError(cause: unknown): LedgerTrustError {
  const code = codeOf(cause);
  const sent = !neverSent.has(code);
  const message = sent
    ? 'The connection ended before the answer was there.'
    : `The service cannot be reached (${code}): check the address, and that the service runs.`;
  return new LedgerTrustError('connection_lost', message, { details: { sent }, cause });
}

function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError) return codeOf(cause.errors[0]);
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' ? code : '';
}
