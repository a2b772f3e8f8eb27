import { isIPv6 } from 'node:net';

/** A host name or IPv4 address, or an IPv6 address in brackets, and a port. */
const form =
  /^(?:(?<host>[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?)|\[(?<ipv6>[0-9A-Fa-f:.]{2,45})\]):(?<port>[1-9]\d{0,4})$/;

/** Whether a text is host:port and nothing else. Addresses come from Redis, where others may write. */
export function isNodeAddress(text: string): boolean {
  const { ipv6, port } = form.exec(text)?.groups ?? {};
  return port !== undefined && Number(port) <= 65_535 && (ipv6 === undefined || isIPv6(ipv6));
}

/** Returns an address as a target of grpc-js: always a name to look up, never a socket file. null: it is no address. */
export function nodeTarget(address: string): string | null {
  return isNodeAddress(address) ? `dns:///${address}` : null;
}
