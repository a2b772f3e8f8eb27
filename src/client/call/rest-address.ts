/**
 * Parses the base URL of the service. Throws TypeError for one that is not an http(s) address and a path alone.
 * `prefix` is its path, without a slash at the end.
 */
export function restAddress(baseUrl: string): { readonly origin: string; readonly prefix: string } {
  const url = new URL(baseUrl);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError('baseUrl must be an http or https URL');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError('baseUrl is an address and a path alone');
  return { origin: url.origin, prefix: url.pathname.replace(/\/$/, '') };
}
