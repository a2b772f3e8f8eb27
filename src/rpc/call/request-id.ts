const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** X-Request-Id as sent where it is 1–128 of `A-Za-z0-9._-`, else one made by `make` (decisions.md, section 1). */
export function requestIdOf(sent: string | undefined, make: () => string): string {
  return sent !== undefined && REQUEST_ID.test(sent) ? sent : make();
}
