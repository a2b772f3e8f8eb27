import ipaddr from 'ipaddr.js';
import { invalidField } from '../../domain/errors.ts';
import { checkUrl } from '../../domain/fields.ts';

/** Where webhooks may go (decisions.md, section 7; security.md, Webhooks). */
export interface TargetPolicy {
  /** In production mode https on public addresses alone; in development mode loopback too, with http or https. */
  readonly production: boolean;
  /** Ports that this node, its store and its leases listen on: no target on loopback, even in development mode, nor on `ownAddresses`. */
  ownPorts(): ReadonlySet<number>;
  /** The addresses of this machine, public ones among them. */
  ownAddresses(): Iterable<string>;
}

/** Nobody's webhook receiver: Redis, and Cassandra's client, node and JMX ports, where they stand if nobody moved them. */
const backendPorts: ReadonlySet<number> = new Set([6379, 6380, 16379, 26379, 7000, 7001, 7199, 9042, 9142]);

/** Global unicast (RFC 4291, section 2.4; IANA IPv6 address space): everything outside is not routed, or maps something else. */
const globalUnicast: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3];

export type AddressKind = 'public' | 'loopback' | 'forbidden';

/**
 * What kind of address a literal is. Forbidden: private, link-local, unique local, CGNAT, multicast, reserved, and every IPv6 form that stands
 * for an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo), whichever it is.
 */
export function addressKind(literal: string): AddressKind {
  if (!ipaddr.isValid(literal)) return 'forbidden';
  const address = ipaddr.parse(literal);
  const range = address.range();
  if (range === 'loopback') return 'loopback';
  if (range !== 'unicast') return 'forbidden';
  return address.kind() === 'ipv6' && !(address as ipaddr.IPv6).match(globalUnicast) ? 'forbidden' : 'public';
}

/** Whether a connection to this address and port may be made, or kept. `protocol` as URLs have it. */
export function mayConnect(policy: TargetPolicy, protocol: string, address: string, port: number): boolean {
  switch (addressKind(address)) {
    case 'public':
      return protocol === 'https:' && !backendPorts.has(port) && !isOwn(policy, address, port);
    case 'loopback':
      return !policy.production && !backendPorts.has(port) && !policy.ownPorts().has(port);
    case 'forbidden':
      return false;
  }
}

/** A receiver's URL as it is given at creation: what can be seen to be forbidden is refused there, the rest at connection. */
export function checkTarget(field: string, value: unknown, policy: TargetPolicy): string {
  const text = checkUrl(field, value);
  const url = new URL(text);
  const host = hostOf(url);
  const port = portOf(url);
  if (policy.production && url.protocol !== 'https:') throw invalidField(field, 'an https URL');
  if (isLocalName(host)) {
    if (!mayConnect(policy, url.protocol, '127.0.0.1', port)) throw forbidden(field, policy);
  } else if (ipaddr.isValid(host)) {
    if (!mayConnect(policy, url.protocol, host, port)) throw forbidden(field, policy);
  }
  return text;
}

/** The host of a URL without the brackets of IPv6, in the parser's form: `127.1` and `0x7f000001` are 127.0.0.1 here. */
export function hostOf(url: Pick<URL, 'hostname'>): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
}

export function portOf(url: Pick<URL, 'port' | 'protocol'>): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** `localhost`, names below it, and both with the root's dot (RFC 6761, section 6.3). */
export function isLocalName(host: string): boolean {
  return /^(?:.*\.)?localhost\.?$/i.test(host);
}

/** Whether this service itself stands there. Elsewhere the same port is somebody else's, 443 above all. */
function isOwn(policy: TargetPolicy, address: string, port: number): boolean {
  if (!policy.ownPorts().has(port)) return false;
  const told = ipaddr.parse(address).toNormalizedString();
  for (const own of policy.ownAddresses()) {
    if (ipaddr.isValid(own) && ipaddr.parse(own).toNormalizedString() === told) return true;
  }
  return false;
}

function forbidden(field: string, policy: TargetPolicy): Error {
  const loopback = policy.production ? '' : ' or loopback';
  return invalidField(field, `an https URL on a public address${loopback}, on a port that is not this service’s own`);
}
