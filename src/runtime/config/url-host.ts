/** An address or name in the form that URLs use: IPv6 in brackets (RFC 3986, section 3.2.2). */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
