import ipaddr from 'ipaddr.js';

const label = /^[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/;
const nameCharactersMax = 253;

/** Whether a text is an IP address, without brackets, or the name of a host. A URL is none, nor is anything with a port. */
export function isHost(text: string): boolean {
  if (ipaddr.isValid(text)) return true;
  const name = text.replace(/\.$/, '');
  // What looks like an IPv4 address and is none is no name either.
  if (name.length > nameCharactersMax || /^[\d.]+$/.test(name)) return false;
  return name.split('.').every((part) => label.test(part));
}

/** Whether a text is `host`, `host:port`, or an IPv6 address in brackets with or without a port. */
export function isHostWithPort(text: string): boolean {
  const parts = /^(?:\[([^[\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text);
  if (parts === null) return false;
  const [, bracketed, plain, port] = parts;
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) return false;
  return bracketed === undefined ? isHost(plain ?? '') : ipaddr.IPv6.isValid(bracketed);
}
