const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Returns X-Request-Id as sent if it has 1–128 characters of `A-Za-z0-9._-`. Otherwise returns a new one (`make`). */
export function requestIdOf(sent: string | undefined, make: () => string): string {
  return sent !== undefined && REQUEST_ID.test(sent) ? sent : make();
}
