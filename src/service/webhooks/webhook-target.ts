import ipaddr from 'ipaddr.js';
import { invalidField } from '../../domain/errors.ts';
import { checkUrl } from '../../domain/values/fields.ts';

/** Which addresses webhooks may be sent to (docs/security.md, Where webhooks go). */
export interface TargetPolicy {
  /** true: https to public addresses only. false: also loopback addresses, with http or https. */
  readonly production: boolean;
  /** Ports of this node, its store and its leases. They are always refused on loopback and on `ownAddresses`. */
  ownPorts(): ReadonlySet<number>;
  ownAddresses(): Iterable<string>;
}

/** Default ports of Redis and of Cassandra (client, node and JMX). No webhook receiver listens on these. */
const wellKnownBackendPorts: ReadonlySet<number> = new Set([6379, 6380, 16379, 26379, 7000, 7001, 7199, 9042, 9142]);

/** Global unicast (RFC 4291, section 2.4). All other addresses are not routed, or map to something else. */
const globalUnicast: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3];

type AddressKind = 'public' | 'loopback' | 'forbidden';

/**
 * The kind of a literal address. Forbidden: private, link-local, unique local, CGNAT, multicast, reserved, and every
 * IPv6 form of an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo), whatever that address is.
 */
export function addressKind(literal: string): AddressKind {
  if (!ipaddr.isValid(literal)) return 'forbidden';
  const address = ipaddr.parse(literal);
  const range = address.range();
  if (range === 'loopback') return 'loopback';
  if (range !== 'unicast') return 'forbidden';
  return address.kind() === 'ipv6' && !(address as ipaddr.IPv6).match(globalUnicast) ? 'forbidden' : 'public';
}

/** Whether a connection may be made, or kept. `protocol` has the form of URLs, such as `https:`. */
export function mayConnect(policy: TargetPolicy, protocol: string, address: string, port: number): boolean {
  switch (addressKind(address)) {
    case 'public':
      return protocol === 'https:' && !wellKnownBackendPorts.has(port) && !isOwn(policy, address, port);
    case 'loopback':
      return !policy.production && !wellKnownBackendPorts.has(port) && !policy.ownPorts().has(port);
    case 'forbidden':
      return false;
  }
}

/**
 * Checks a receiver's URL at creation, and returns it. Throws `invalid_argument` for what is visibly forbidden; host
 * names are checked at connection.
 */
export function checkTarget(field: string, value: unknown, policy: TargetPolicy): string {
  const text = checkUrl(field, value);
  const url = new URL(text);
  if (policy.production && url.protocol !== 'https:') throw invalidField(field, 'an https URL');
  const host = isLocalName(hostOf(url)) ? '127.0.0.1' : hostOf(url);
  if (!ipaddr.isValid(host) || mayConnect(policy, url.protocol, host, portOf(url))) return text;
  const loopback = policy.production ? '' : ' or loopback';
  throw invalidField(field, `an https URL on a public address${loopback}, on a port that is not this service’s own`);
}

/** The host without the brackets of IPv6. The URL parser has normalized it: `0x7f000001` is 127.0.0.1. */
export function hostOf(url: Pick<URL, 'hostname'>): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
}

export function portOf(url: Pick<URL, 'port' | 'protocol'>): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** `localhost` and names below it, also with the root's dot (RFC 6761, section 6.3). */
export function isLocalName(host: string): boolean {
  return /^(?:.*\.)?localhost\.?$/i.test(host);
}

/** Whether this service listens at the address and port. On other addresses the same port belongs to others. */
function isOwn(policy: TargetPolicy, address: string, port: number): boolean {
  if (!policy.ownPorts().has(port)) return false;
  const normalized = ipaddr.parse(address).toNormalizedString();
  return Iterator.from(policy.ownAddresses()).some(
    (own) => ipaddr.isValid(own) && ipaddr.parse(own).toNormalizedString() === normalized,
  );
}
