import ipaddr from 'ipaddr.js';

const label = /^[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/;
const nameCharactersMax = 253;

/** An IP address, without brackets, or a host name. Not a URL, and nothing with a port. */
export function isHost(text: string): boolean {
  if (ipaddr.isValid(text)) return true;
  const name = text.replace(/\.$/, '');
  // A text of digits and dots that is not an IPv4 address is not a name either.
  if (name.length > nameCharactersMax || /^[\d.]+$/.test(name)) return false;
  return name.split('.').every((part) => label.test(part));
}

/** `host`, `host:port`, or an IPv6 address in brackets with or without a port. */
export function isHostWithPort(text: string): boolean {
  const parts = /^(?:\[([^[\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text);
  if (parts === null) return false;
  const [, bracketed, plain, port] = parts;
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) return false;
  return bracketed === undefined ? isHost(plain ?? '') : ipaddr.IPv6.isValid(bracketed);
}
